# SPDX-License-Identifier: Apache-2.0
"""torch_checks.py bench | checks LIMIT_MIB: PyTorch under the library.

bench prints "name rate" lines. checks asserts that a limited process sees its limit, is refused with
PyTorch's own out-of-memory error, recovers, and can train, capture graphs, use cuBLAS and fork.
"""
import os
import subprocess
import sys
import time

import torch


def rate(step, seconds=4.0):
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    start, n = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
        n += 5
    return n / (time.monotonic() - start)


def trainer(width=2048, batch=512):
    model = torch.nn.Sequential(*[
        layer for _ in range(6) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())
    ]).cuda()
    optimiser = torch.optim.Adam(model.parameters())
    data = torch.randn(batch, width, device="cuda")

    def step():
        optimiser.zero_grad()
        model(data).square().mean().backward()
        optimiser.step()

    return step


def matmul(n=4096):
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    return lambda: torch.mm(a, b)


def replay(width=1024):
    x = torch.randn(width, width, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            y = (x @ x).relu() @ x
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x
        for _ in range(10):
            y = (y @ x).relu() * 0.01
    return graph.replay


def bench():
    torch.manual_seed(1)
    print(f"step {rate(trainer()):.3f}")
    print(f"matmul {rate(matmul()):.3f}")
    print(f"graph {rate(replay()):.3f}")


def checks(limit_mib):
    limit = limit_mib << 20
    free, total = torch.cuda.mem_get_info()
    assert total == limit, f"total {total >> 20} MiB"
    assert free < limit
    assert torch.cuda.get_device_properties(0).total_memory == limit

    held = []
    try:
        while True:
            held.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        pass
    assert (len(held) << 28) <= limit and ((len(held) + 1) << 28) > free
    print(f"memory: {len(held)} chunks of 256 MiB in {limit_mib} MiB, then OutOfMemoryError: ok")
    held.clear()
    torch.cuda.empty_cache()
    # The allocator's own recovery: cached blocks are given back and the request then fits.
    cached = [torch.empty(512 << 20, dtype=torch.uint8, device="cuda") for _ in range(5)]
    del cached
    big = torch.empty(2600 << 20, dtype=torch.uint8, device="cuda")
    del big
    torch.cuda.empty_cache()
    print("recovery: a large request after a full cache: ok")

    step = trainer(1024, 128)
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    again = replay()
    for _ in range(100):
        again()
    torch.cuda.synchronize()
    x = torch.randn(512, 512, device="cuda", dtype=torch.float64)
    y = torch.linalg.inv(x) @ x
    assert (y - torch.eye(512, device="cuda", dtype=torch.float64)).abs().max() < 1e-6
    print("training, captured graph, cuBLAS and cuSOLVER: ok")

    child = os.fork()
    if child == 0:
        os._exit(0 if sum(range(1000)) == 499500 else 1)
    assert os.waitpid(child, 0)[1] == 0
    code = "import torch; x = torch.ones(1000, device='cuda'); assert x.sum().item() == 1000"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    torch.ones(10, device="cuda").sum().item()
    print("fork and a child process of its own: ok")


if __name__ == "__main__":
    if sys.argv[1] == "bench":
        bench()
    else:
        checks(int(sys.argv[2]))
