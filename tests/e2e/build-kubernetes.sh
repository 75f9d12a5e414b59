#!/usr/bin/env bash
# Builds the Kubernetes programs that the end-to-end tests run, from source, once per version:
# kube-apiserver, kube-scheduler, kubectl and kubelet. The current version comes from the Go
# module proxy (tests/e2e/kubernetes/go.mod pins every module), the oldest supported one, 1.20.2,
# from Debian's source package. etcd is Debian's, unpacked and not installed: the package would
# start a service.
#
# usage: build-kubernetes.sh [--force] VERSION
#        build-kubernetes.sh --list              the versions that can be built
#
# Installs from Debian what it needs. Prints the folder with the programs on stdout, progress on
# stderr. The folder is ${XDG_CACHE_HOME:-~/.cache}/kube-vgpu/kubernetes-VERSION (KUBE_VGPU_CACHE
# names another parent); it appears only when it is complete, so an interrupted build leaves nothing
# half-made behind.

set -euo pipefail

readonly OLDEST=1.20.2
readonly PROGRAMS=(kube-apiserver kube-scheduler kubectl kubelet)

# The Go that is fetched through the module proxy when the machine's own is too old, and the
# version in bookworm-backports that can fetch it: Go learned to do that in 1.21.
readonly GO_TOOLCHAIN=go1.26.8
readonly GO_BOOTSTRAP=1.23

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here
cache=${KUBE_VGPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-vgpu}
readonly cache
work=

say()
{
	printf '%s build-kubernetes: %s\n' "$(date +%H:%M:%S)" "$*" >&2
}

die()
{
	say "error: $*"
	exit 1
}

# Everything of the build but the result and what Go caches lives in $work.
cleanup()
{
	rm -rf -- "$work"
}

as_root()
{
	if [[ $(id -u) -eq 0 ]]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "must be root, or have sudo, for: $*"
	fi
}

installed()
{
	[[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# The mirror that this machine already uses, so that a local mirror or proxy is honoured.
debian_mirror()
{
	local uri
	# shellcheck disable=SC2016 # $(REPO_URI) is for apt, not for the shell
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
		'Codename: bookworm' 'Label: Debian' 2>/dev/null | head -n 1)
	printf '%s\n' "${uri:-http://deb.debian.org/debian}"
}

# apt with package lists of our own in $work: bookworm, its backports and its sources are
# visible to these calls only; nothing under /etc changes.
apt_private()
{
	local runner=$1
	shift
	if [[ ! -d $work/apt/lists ]]; then
		mkdir -p "$work/apt/lists/partial"
		{
			printf 'Types: deb deb-src\nURIs: %s\n' "$(debian_mirror)"
			printf 'Suites: bookworm bookworm-backports\nComponents: main\n'
			printf 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n'
		} >"$work/apt/debian.sources"
		apt_private env update -q >&2
	fi
	"$runner" apt-get -o "Dir::State::lists=$work/apt/lists" \
		-o "Dir::Etc::SourceList=$work/apt/debian.sources" \
		-o Dir::Etc::SourceParts=/nonexistent \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o APT::Sandbox::User= "$@"
}

# Installs the packages that are missing among the arguments.
need_packages()
{
	local package missing=()
	for package in "$@"; do
		installed "$package" || missing+=("$package")
	done
	[[ ${#missing[@]} -eq 0 ]] && return
	say "installing Debian packages: ${missing[*]}"
	apt_private as_root -q -y --no-install-recommends install "${missing[@]}" >&2
}

# go_at_least GO MAJOR.MINOR: is the command GO there and new enough?
go_at_least()
{
	local have
	have=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	[[ $(printf '%s\n%s\n' "$2" "${have#go}" | sort -V | head -n 1) == "$2" ]]
}

# Sets $go and GOTOOLCHAIN for a module whose go.mod asks for version $1.
find_go()
{
	local wanted=$1
	export GOTOOLCHAIN=local
	for go in "${GO:-go}" /usr/local/go/bin/go; do
		if go_at_least "$go" "$wanted"; then
			say "using $("$go" version)"
			return
		fi
	done
	for go in "${GO:-go}" /usr/local/go/bin/go "/usr/lib/go-$GO_BOOTSTRAP/bin/go"; do
		go_at_least "$go" 1.21 && break
	done
	# After a loop without success $go is the last of the list, which this installs.
	go_at_least "$go" 1.21 || need_packages "golang-$GO_BOOTSTRAP-go"
	export GOTOOLCHAIN=$GO_TOOLCHAIN
	say "fetching $GO_TOOLCHAIN through the Go module proxy with $go"
	"$go" version >&2
}

# build OUT PREFIX VERSION-PACKAGE: the programs of the main packages PREFIX/cmd/* into OUT.
# Static, without symbol tables: these are run, never debugged, and linking is half as long.
build()
{
	local out=$1 prefix=$2 version_package=$3 program packages=()
	for program in "${PROGRAMS[@]}"; do
		packages+=("$prefix/cmd/$program")
	done
	local flags="-s -w"
	flags+=" -X $version_package.gitVersion=v$version"
	flags+=" -X $version_package.gitMajor=${version%%.*}"
	flags+=" -X $version_package.gitMinor=$(cut -d. -f2 <<<"$version")"
	CGO_ENABLED=0 nice -n 10 "$go" build -trimpath -ldflags "$flags" -o "$out/" "${packages[@]}" >&2
}

build_current()
{
	local out=$1
	need_packages ca-certificates
	find_go "$(sed -n 's/^go //p' "$here/kubernetes/go.mod")"
	cd "$here/kubernetes"
	export GOFLAGS=-mod=readonly
	say "fetching the modules of Kubernetes $version"
	"$go" mod download k8s.io/kubernetes >&2
	say "compiling ${PROGRAMS[*]} (five to fifteen minutes on two cores)"
	build "$out" k8s.io/kubernetes k8s.io/component-base/version
}

# The names of all packages that want an OpenAPI definition, comma separated. Upstream's
# makefiles collect the same list; packages of the staging area are known by their vendored name.
openapi_packages()
{
	grep -rl --include='*.go' '+k8s:openapi-gen=true' pkg cmd staging/src/k8s.io vendor/k8s.io |
		grep -v -e '/testdata/' -e '_test\.go$' | xargs -n 1 dirname |
		sed -e 's,^staging/src/,vendor/,' -e 's,^,k8s.io/kubernetes/,' | sort -u | paste -sd ,
}

build_oldest()
{
	local out=$1 tree=$work/gopath/src/k8s.io/kubernetes
	need_packages ca-certificates dpkg-dev golang-1.19-go golang-github-modern-go-reflect2-dev
	go=/usr/lib/go-1.19/bin/go
	unset GOFLAGS GOTOOLCHAIN
	export GOPATH=$work/gopath GO111MODULE=off
	say "fetching Debian's source package of Kubernetes $version"
	mkdir -p "$work/source" "$(dirname "$tree")"
	cd "$work/source"
	apt_private env -q --download-only source kubernetes >&2
	local dsc=(kubernetes_*"$version"-*.dsc)
	[[ -f ${dsc[0]} ]] || die "Debian's source package is no longer $version: $(ls)"
	dpkg-source --no-check -x "${dsc[0]}" "$tree" >&2

	cd "$tree"
	say "generating the OpenAPI definitions"
	"$go" build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen >&2
	"$work/openapi-gen" --go-header-file hack/boilerplate/boilerplate.generatego.txt \
		--input-dirs "$(openapi_packages)" --output-base "$work/gopath/src" \
		--output-package k8s.io/kubernetes/pkg/generated/openapi \
		--output-file-base zz_generated.openapi \
		--report-filename "$work/openapi-violations" >&2

	# The vendored release reads the runtime's map layout, which Go 1.18 changed: the API
	# server built with it crashes at its first request.
	rm -rf vendor/github.com/modern-go/reflect2
	cp -r /usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/

	say "compiling ${PROGRAMS[*]} (four to ten minutes on two cores)"
	build "$out" k8s.io/kubernetes k8s.io/kubernetes/vendor/k8s.io/component-base/version
}

# Debian's etcd into $1.
fetch_etcd()
{
	local out=$1
	say "fetching Debian's etcd"
	mkdir "$work/etcd"
	cd "$work/etcd"
	apt_private env -q download etcd-server >&2
	dpkg-deb -x etcd-server_*.deb .
	mv usr/bin/etcd "$out/etcd"
}

# Is everything there? An older version of this script may have made less.
complete()
{
	local program
	for program in "${PROGRAMS[@]}" etcd; do
		[[ -x $1/$program ]] || return 1
	done
}

main()
{
	local current force=false
	current=$(sed -n 's/^\(require\)\?[[:space:]]*k8s\.io\/kubernetes v\([0-9.]*\).*/\2/p' \
		"$here/kubernetes/go.mod")
	case ${1-} in
	--list)
		printf '%s\n' "$current" "$OLDEST"
		return
		;;
	--force)
		force=true
		shift
		;;
	esac
	[[ $# -eq 1 && $1 != -* ]] || die "usage: $0 [--force] VERSION | --list"
	version=$1
	local result=$cache/kubernetes-$version start=$SECONDS
	[[ $version == "$OLDEST" || $version == "$current" ]] ||
		die "cannot build $version: only $OLDEST and $current (see tests/e2e/kubernetes/go.mod)"

	mkdir -p "$cache"
	exec 9>"$cache/.kubernetes-$version.lock"
	flock -n 9 || { say "waiting for another build of $version"; flock 9; }

	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	rm -rf -- "$cache/.building-$version".*
	work=$(mktemp -d "$cache/.building-$version.XXXXXX")
	if ! $force && complete "$result"; then
		printf '%s\n' "$result"
		return
	fi

	mkdir "$work/programs"
	# Go's build cache lets an interrupted build go on where it was. It takes gigabytes that
	# nobody else has a use for, so it is not the user's own and ends with the build.
	export GOCACHE=$cache/.go-build-$version
	(fetch_etcd "$work/programs")
	# In a subshell: the Go environment of one version must not leak into anything else.
	if [[ $version == "$OLDEST" ]]; then
		(build_oldest "$work/programs")
	else
		(build_current "$work/programs")
	fi

	local program
	for program in "${PROGRAMS[@]}"; do
		"$work/programs/$program" --version >&2 2>/dev/null ||
			"$work/programs/$program" version --client >&2 ||
			die "$program was built but does not run"
	done
	rm -rf -- "$result"
	mv "$work/programs" "$result"
	rm -rf -- "$GOCACHE"
	say "Kubernetes $version built in $((SECONDS - start)) s: $result"
	printf '%s\n' "$result"
}

main "$@"
