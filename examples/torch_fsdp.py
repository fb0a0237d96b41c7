"""Fully sharded training as any PyTorch user writes it; `--backend gloo` is the same without a fabric.

WEFT_SCENARIO=examples/torch_fabric.yaml torchrun --nproc-per-node 4 examples/torch_fsdp.py
"""

import argparse

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main() -> None:
    """Train for some steps, and print the mean loss of every tenth."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="weft")
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(1)

    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)[rank::world]
    labels = torch.tensor(digits.target)[rank::world]

    mesh = init_device_mesh("cpu", (world,))
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0 and (step + 1) % 10 == 0:
            print(f"step {step + 1}: loss {mean / world:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
