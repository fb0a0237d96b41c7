"""Data-parallel training as any PyTorch user writes it; `--backend gloo` is the same without a fabric.

WEFT_SCENARIO=examples/torch_fabric.yaml torchrun --nproc-per-node 4 examples/torch_ddp.py
"""

import argparse

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main() -> None:
    """Train for some epochs, and print the mean loss of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="weft")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    torch.manual_seed(1)
    torch.set_num_threads(1)

    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    data = TensorDataset(images, torch.tensor(digits.target))
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=32, sampler=sampler)

    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    model = DistributedDataParallel(model, bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), labels)
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item() * len(labels), len(labels)])
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}: loss {total[0] / total[1]:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
