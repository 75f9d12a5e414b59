"""The annotations between scheduler and node, read the way a node reads them: strictly.

Written from the protocol's description, not from the daemon's code, so that a mistake of the
daemon is not repeated here.
"""

import collections
import re

COUNT = "nvidia.com/gpu"
MEMORY = "nvidia.com/gpumem"
PERCENTAGE = "nvidia.com/gpumem-percentage"
CORES = "nvidia.com/gpucores"

NODE_REGISTER = "hami.io/node-nvidia-register"
NODE = "hami.io/vgpu-node"
TIME = "hami.io/vgpu-time"
BIND_PHASE = "hami.io/bind-phase"
BIND_TIME = "hami.io/bind-time"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
ALLOCATED = "hami.io/vgpu-devices-allocated"
# What a binding writes, all of it or nothing.
WRITTEN_AT_BIND = (NODE, TIME, BIND_PHASE, BIND_TIME, TO_ALLOCATE, ALLOCATED)

Share = collections.namedtuple("Share", "uuid kind mem_mib cores")
Request = collections.namedtuple("Request", "count mem_mib percentage cores")

_SHARE = re.compile(r"([^,:;]+),([^,:;]+),(0|[1-9][0-9]*),(0|[1-9][0-9]*)")


def full_name(pod):
    """namespace/name"""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def annotations(pod):
    """The annotations of a pod, never None."""
    return pod["metadata"].get("annotations") or {}


def containers(pod):
    """Init containers first, then the others: the order of the segments."""
    return (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]


def request_of(container):
    """The GPU request of a container as admitted, or None."""
    limits = container.get("resources", {}).get("limits", {})
    count = int(limits.get(COUNT, 0))
    if not count:
        return None
    memory = limits.get(MEMORY)
    percentage = limits.get(PERCENTAGE)
    if memory is None and percentage is None:
        percentage = 100
    # kube-apiserver answers with canonical quantities: 2000 comes back as "2k".
    return Request(count, quantity(memory) if memory else None,
                   int(percentage) if not memory else None, quantity(limits.get(CORES, "0")))


def quantity(text):
    """A whole quantity in its canonical form."""
    factors = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
    for suffix, factor in sorted(factors.items(), key=lambda item: -len(item[0])):
        if text.endswith(suffix):
            return int(text[:-len(suffix)]) * factor
    return int(text)


def wants_gpu(pod):
    """Does any container ask for a GPU?"""
    return any(request_of(container) for container in containers(pod))


def parse_devices(text):
    """The segments of a device list, one list of Share per container; ValueError if malformed."""
    if not text.endswith(";"):
        raise ValueError(f"{text!r} does not end with ';'")
    result = []
    for segment in text[:-1].split(";"):
        if segment and not segment.endswith(":"):
            raise ValueError(f"segment {segment!r} does not end with ':'")
        shares = []
        for piece in segment[:-1].split(":") if segment else []:
            match = _SHARE.fullmatch(piece)
            if not match:
                raise ValueError(f"malformed device {piece!r} in {text!r}")
            uuid, kind, memory, cores = match.groups()
            shares.append(Share(uuid, kind, int(memory), int(cores)))
        result.append(shares)
    return result


def allocation_problem(pod, cards=None):
    """Why the allocation on a pod that was just bound cannot be used, or None.

    Checks everything that can be checked without knowing the reasons of the decision: the
    grammar, that each container got what it asked for, and, given the cards by UUID, that
    they are cards of the node.
    """
  
    notes = annotations(pod)
    missing = [key for key in WRITTEN_AT_BIND if key not in notes]
    if missing:
        return "bound without " + ", ".join(missing)
    if notes[NODE] != pod["spec"]["nodeName"]:
        return f"bound to {pod['spec']['nodeName']} but allocated on {notes[NODE]}"
    for key in (TIME, BIND_TIME):
        if not re.fullmatch(r"[1-9][0-9]{9}", notes[key]):
            return f"{key} is {notes[key]!r}, not Unix seconds"
    try:
        segments = parse_devices(notes[ALLOCATED])
    except ValueError as error:
        return f"{ALLOCATED}: {error}"
    if notes[BIND_PHASE] == "allocating" and notes[TO_ALLOCATE] != notes[ALLOCATED]:
        return f"{TO_ALLOCATE} {notes[TO_ALLOCATE]!r} differs from {notes[ALLOCATED]!r}"
    if len(segments) != len(containers(pod)):
        return f"{len(segments)} segments for {len(containers(pod))} containers"
    for container, shares in zip(containers(pod), segments):
        problem = _share_problem(request_of(container), shares, pod, cards)
        if problem:
            return f"container {container['name']}: {problem}"
    return None


def _share_problem(request, shares, pod, cards):
    if request is None:
        return f"asked for no GPU and got {shares}" if shares else None
    if len(shares) != request.count:
        return f"asked for {request.count} cards and got {len(shares)}"
    if len({share.uuid for share in shares}) != len(shares):
        return f"got a card twice: {shares}"
    for share in shares:
        if share.kind != "NVIDIA":
            return f"device kind {share.kind!r}"
        if share.cores != request.cores:
            return f"asked for {request.cores} cores and got {share.cores}"
        if request.mem_mib is not None and share.mem_mib != request.mem_mib:
            return f"asked for {request.mem_mib} MiB and got {share.mem_mib}"
        if cards is None:
            continue
        card = cards.get(share.uuid)
        if card is None or card.node != pod["spec"]["nodeName"]:
            return f"{share.uuid} is not a card of {pod['spec']['nodeName']}"
        if not card.healthy:
            return f"{share.uuid} is not healthy"
        if request.mem_mib is None:
            wanted = card.mem_mib * request.percentage // 100
            if share.mem_mib != wanted:
                return f"{request.percentage} % is {wanted} MiB and it got {share.mem_mib}"
    return None


def collapse(pod):
    """What a bound pod holds: {uuid: (slots, mem_mib, cores)}, for its highest need over time.

    Init containers run one after the other and before the rest, so of them only the largest
    counts, and only where it exceeds the sum of the others.
    """
    segments = parse_devices(annotations(pod)[ALLOCATED])
    inits = len(pod["spec"].get("initContainers") or [])
    early, late = {}, {}
    for index, shares in enumerate(segments):
        for share in shares:
            side, merge = (early, max) if index < inits else (late, int.__add__)
            slots, memory, cores = side.get(share.uuid, (0, 0, 0))
            side[share.uuid] = (1 if index < inits else slots + 1,
                                merge(memory, share.mem_mib), merge(cores, share.cores))
    return {uuid: tuple(map(max, early.get(uuid, (0, 0, 0)), late.get(uuid, (0, 0, 0))))
            for uuid in early.keys() | late.keys()}
