#!/usr/bin/env python3
"""Trains the Fashion-MNIST classifiers of the suite.

    python3 suites/data/train_fashion.py resnet_fashion    # about 20 minutes
    python3 suites/data/train_fashion.py mobilenet_fashion    # about 10
    python3 suites/data/train_fashion.py vit_fashion --epochs 16    # 40

Writes MODEL.onnx beside this script, and after every epoch the weights so
far as MODEL.pt, which --export takes. Needs dataset-fashion-mnist and
Debian's python3-torch; a newer PyTorch trains faster, but wants the onnx
package for the last step. The seed is fixed; another PyTorch version or
thread count may still round differently, so accuracy is a band, not a
constant.
The input is f32 N x 1 x 28 x 28, pixel / 255, and (x - 0.2860) / 0.3530 is
the first layer of the network, so that callers feed plain pixels.
BatchNormalization is exported as such: folding it is the compiler's work.
"""
import argparse
import gzip
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DATA = "/usr/share/datasets/fashion-mnist"
HERE = os.path.dirname(os.path.abspath(__file__))
MEAN, STD = 0.2860, 0.3530


def load(kind):
    def read(name, head):
        path = os.path.join(DATA, f"{kind}-{name}-ubyte.gz")
        with gzip.open(path) as f:
            return np.frombuffer(f.read(), np.uint8, offset=head)
    images = read("images-idx3", 16).reshape(-1, 1, 28, 28)
    labels = read("labels-idx1", 8)
    x = torch.from_numpy(images.astype(np.float32) / 255)
    return x, torch.from_numpy(labels.astype(np.int64))


class Normalize(nn.Module):
    def forward(self, x):
        return (x - MEAN) / STD


def conv_bn(cin, cout, k, stride=1, groups=1):
    return [nn.Conv2d(cin, cout, k, stride, k // 2, groups=groups,
                      bias=False), nn.BatchNorm2d(cout)]


class Residual(nn.Module):
    """The basic block of ResNet: two 3x3 convolutions and a shortcut."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        self.body = nn.Sequential(*conv_bn(cin, cout, 3, stride), nn.ReLU(),
                                  *conv_bn(cout, cout, 3))
        self.shortcut = nn.Sequential() if stride == 1 and cin == cout \
            else nn.Sequential(*conv_bn(cin, cout, 1, stride))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class InvertedResidual(nn.Module):
    """MobileNetV2's expand, depthwise, project."""

    def __init__(self, cin, cout, stride, expand):
        super().__init__()
        mid = cin * expand
        self.body = nn.Sequential(
            *conv_bn(cin, mid, 1), nn.ReLU6(),
            *conv_bn(mid, mid, 3, stride, groups=mid), nn.ReLU6(),
            *conv_bn(mid, cout, 1))
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        y = self.body(x)
        return x + y if self.residual else y


def head(channels):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]


def resnet_fashion():
    layers = [Normalize(), *conv_bn(1, 24, 3), nn.ReLU(),
              Residual(24, 24, 1), Residual(24, 48, 2), Residual(48, 48, 1),
              Residual(48, 96, 2), Residual(96, 96, 1)]
    return nn.Sequential(*layers, *head(96))


def mobilenet_fashion():
    layers = [Normalize(), *conv_bn(1, 16, 3, 2), nn.ReLU6(),
              InvertedResidual(16, 16, 1, 3),
              InvertedResidual(16, 32, 2, 4), InvertedResidual(32, 32, 1, 4),
              InvertedResidual(32, 32, 1, 4),
              InvertedResidual(32, 64, 2, 4), InvertedResidual(64, 64, 1, 4),
              *conv_bn(64, 192, 1), nn.ReLU6()]
    return nn.Sequential(*layers, *head(192))


class Block(nn.Module):
    """Pre-norm transformer encoder block, spelled out in plain operators."""

    def __init__(self, dim, heads, mlp):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim)
                                            for _ in range(4))
        self.up, self.down = nn.Linear(dim, mlp), nn.Linear(mlp, dim)

    def split(self, x):
        n, t, d = x.shape
        return x.reshape(n, t, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x):
        n, t, d = x.shape
        y = self.norm1(x)
        q, k, v = self.split(self.q(y)), self.split(self.k(y)), \
            self.split(self.v(y))
        scores = q @ k.transpose(2, 3) / (d // self.heads) ** 0.5
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    """Vision transformer on 7x7 tokens, mean pooled.

    Convolutions make the tokens (Xiao et al. 2021): with 60,000 images,
    plain 4x4 patches learn much more slowly.
    """

    def __init__(self, dim=96, depth=4, heads=4):
        super().__init__()
        self.normalize = Normalize()
        self.patch = nn.Sequential(*conv_bn(1, 32, 3, 2), nn.ReLU(),
                                   *conv_bn(32, 64, 3), nn.ReLU(),
                                   *conv_bn(64, 64, 3, 2), nn.ReLU(),
                                   nn.Conv2d(64, dim, 1))
        self.position = nn.Parameter(torch.randn(1, 49, dim) * 0.3)
        self.blocks = nn.Sequential(*[Block(dim, heads, 2 * dim)
                                      for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, x):
        x = self.patch(self.normalize(x)).flatten(2).transpose(1, 2)
        x = self.blocks(x + self.position)
        return self.head(self.norm(x).mean(1))


def augment(x):
    """Random flip and a shift of up to two pixels, a batch at a time."""
    flip = torch.rand(len(x)) < 0.5
    x = torch.where(flip[:, None, None, None], x.flip(3), x)
    dx, dy = torch.randint(0, 5, (2,)).tolist()
    return F.pad(x, (2, 2, 2, 2))[:, :, dy:dy + 28, dx:dx + 28]


def export(model, sample, name, output):
    """Writes NAME.onnx beside this script, whole or not at all."""
    model.eval()
    path = os.path.join(HERE, name + ".onnx")
    # PRESERVE keeps BatchNormalization as nodes instead of folding it.
    torch.onnx.export(model, sample, path + ".tmp", opset_version=13,
                      input_names=["image"], output_names=[output],
                      dynamic_axes={"image": {0: "N"}, output: {0: "N"}},
                      training=torch.onnx.TrainingMode.PRESERVE)
    os.rename(path + ".tmp", path)
    print(f"{path}: {os.path.getsize(path)} bytes")


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        hits = sum((model(a).argmax(1) == b).sum().item()
                   for a, b in zip(x.split(500), y.split(500)))
    return hits / len(y)


def main():
    models = {"resnet_fashion": resnet_fashion,
              "mobilenet_fashion": mobilenet_fashion, "vit_fashion": ViT}
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model", choices=sorted(models))
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--export", metavar="FILE.pt",
                    help="export these weights instead of training")
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    x, y = load("train")
    tx, ty = load("t10k")
    model = models[args.model]()
    if args.export:
        model.load_state_dict(torch.load(args.export))
        export(model, tx[:1], args.model, "scores")
        return
    batch, steps = 128, args.epochs * (len(x) // 128)
    if args.model == "vit_fashion":
        step = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
        peak = 2e-3
    else:
        step = torch.optim.SGD(model.parameters(), 0.1, 0.9, nesterov=True,
                               weight_decay=5e-4)
        peak = 0.15
    rate = torch.optim.lr_scheduler.OneCycleLR(step, peak, steps,
                                               pct_start=0.2)
    start = time.time()
    for epoch in range(args.epochs):
        model.train()
        order = torch.randperm(len(x))
        for i in range(len(x) // batch):
            pick = order[i * batch:(i + 1) * batch]
            loss = F.cross_entropy(model(augment(x[pick])), y[pick],
                                   label_smoothing=0.05)
            step.zero_grad()
            loss.backward()
            step.step()
            rate.step()
        print(f"epoch {epoch + 1}/{args.epochs}: loss {loss.item():.3f}, "
              f"test {100 * accuracy(model, tx, ty):.2f} %, "
              f"{time.time() - start:.0f} s", flush=True)
        torch.save(model.state_dict(), os.path.join(HERE, args.model + ".pt"))
    export(model, tx[:1], args.model, "scores")


if __name__ == "__main__":
    main()
