#!/usr/bin/env python3
"""Trains yolo_fashion, the suite's single-shot detector.

    python3 suites/data/train_yolo.py    # about 30 minutes

Writes yolo_fashion.onnx beside this script, as train_fashion.py does. Scenes
are composed like the suite's (models/scenes.c), from the training images: an
80 x 80 canvas of zeros; one to four garments, each resized (bilinear,
half-pixel centres, edges clamped) to a square of 20 to 40 pixels and put at a
random place where its square overlaps no other by an IoU over 0.1 (20 tries);
pixels combine by maximum. A garment's box is the tight box of its own pixels
above 0.1. What it prints is the accuracy on scenes of the test images, but
not on the suite's very scenes.

The network's output is f32 N x 15 x 10 x 10, a cell each 8 pixels: dx, dy,
log w, log h, objectness and ten class scores. Decoding: centre x =
(column + sigmoid(dx)) * 8, width = exp(log w) * 8, score =
sigmoid(objectness) * softmax(classes).
"""
import argparse
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from train_fashion import HERE, MEAN, STD, conv_bn, export, load

CANVAS, CELL, GRID = 80, 8, 10


def place(rng):
    """Squares (x, y, size) of one scene."""
    squares = []
    for _ in range(1 + rng.integers(4)):
        for _ in range(20):
            s = 20 + rng.integers(21)
            x, y = rng.integers(CANVAS - s + 1), rng.integers(CANVAS - s + 1)
            ok = True
            for px, py, ps in squares:
                w = min(x + s, px + ps) - max(x, px)
                h = min(y + s, py + ps) - max(y, py)
                inter = max(w, 0) * max(h, 0)
                ok &= inter <= 0.1 * (s * s + ps * ps - inter)
            if ok:
                squares.append((x, y, s))
                break
    return squares


def compose(images, labels, count, rng):
    """Scenes, and per scene a list of (class, x0, y0, x1, y1)."""
    scenes = torch.zeros(count, 1, CANVAS, CANVAS)
    truth = []
    for i in range(count):
        boxes = []
        for x, y, s in place(rng):
            k = int(rng.integers(len(images)))
            patch = F.interpolate(images[k:k + 1], (s, s), mode="bilinear",
                                  align_corners=False)[0, 0]
            part = scenes[i, 0, y:y + s, x:x + s]
            torch.maximum(part, patch, out=part)
            rows = torch.nonzero((patch > 0.1).any(1))[:, 0]
            cols = torch.nonzero((patch > 0.1).any(0))[:, 0]
            if len(rows) and len(cols):
                boxes.append((int(labels[k]), x + int(cols[0]),
                              y + int(rows[0]), x + int(cols[-1]) + 1,
                              y + int(rows[-1]) + 1))
        truth.append(boxes)
    return scenes, truth


def targets(truth):
    """N x 7 x 10 x 10: what the cell of each box's centre is to say (offsets,
    log sizes, 1, class); 0 elsewhere."""
    t = torch.zeros(len(truth), 7, GRID, GRID)
    for i, boxes in enumerate(truth):
        for c, x0, y0, x1, y1 in boxes:
            cx, cy = (x0 + x1) / 2 / CELL, (y0 + y1) / 2 / CELL
            gx, gy = min(int(cx), GRID - 1), min(int(cy), GRID - 1)
            t[i, :, gy, gx] = torch.tensor(
                [cx - gx, cy - gy, np.log((x1 - x0) / CELL),
                 np.log((y1 - y0) / CELL), 1, c, 0])
    return t


class Stage(nn.Module):
    """A residual pair of 3x3 convolutions with SiLU."""

    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(*conv_bn(c, c, 3), nn.SiLU(),
                                  *conv_bn(c, c, 3), nn.SiLU())

    def forward(self, x):
        return x + self.body(x)


class Yolo(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            *conv_bn(1, 16, 3, 2), nn.SiLU(),
            *conv_bn(16, 40, 3, 2), nn.SiLU(), Stage(40),
            *conv_bn(40, 80, 3, 2), nn.SiLU(), Stage(80), Stage(80),
            *conv_bn(80, 96, 1), nn.SiLU())
        self.head = nn.Conv2d(96, 15, 1)

    def forward(self, x):
        return self.head(self.body((x - MEAN) / STD))


def loss_of(y, t):
    """Boxes and classes count in cells with an object only."""
    here = t[:, 4] > 0
    objectness = F.binary_cross_entropy_with_logits(
        y[:, 4], t[:, 4], pos_weight=torch.tensor(4.0))
    p = y.permute(0, 2, 3, 1)[here]
    q = t.permute(0, 2, 3, 1)[here]
    box = F.smooth_l1_loss(torch.sigmoid(p[:, :2]), q[:, :2]) * 4 + \
        F.smooth_l1_loss(p[:, 2:4], q[:, 2:4]) * 4
    kind = F.cross_entropy(p[:, 5:], q[:, 5].long(), label_smoothing=0.02)
    return objectness * 4 + box + kind


def decode(y):
    """Boxes (class, score, x0, y0, x1, y1) of one image after NMS."""
    score = torch.sigmoid(y[4])[None] * y[5:].softmax(0)
    found = []
    for c, gy, gx in torch.nonzero(score > 0.01).tolist():
        cx = (gx + torch.sigmoid(y[0, gy, gx]).item()) * CELL
        cy = (gy + torch.sigmoid(y[1, gy, gx]).item()) * CELL
        w = np.exp(y[2, gy, gx].item()) * CELL
        h = np.exp(y[3, gy, gx].item()) * CELL
        found.append((c, score[c, gy, gx].item(), cx - w / 2, cy - h / 2,
                      cx + w / 2, cy + h / 2))
    found.sort(key=lambda b: -b[1])
    kept = []
    for b in found:
        if all(b[0] != k[0] or iou(b[2:], k[2:]) < 0.5 for k in kept):
            kept.append(b)
    return kept


def iou(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    inter = max(w, 0) * max(h, 0)
    return inter / ((a[2] - a[0]) * (a[3] - a[1]) +
                    (b[2] - b[0]) * (b[3] - b[1]) - inter)


def map50(model, scenes, truth):
    model.eval()
    with torch.no_grad():
        out = torch.cat([model(x) for x in scenes.split(100)])
    found = [decode(y) for y in out]
    ap = []
    for c in range(10):
        rows, total, used = [], 0, set()
        for i, boxes in enumerate(truth):
            total += sum(b[0] == c for b in boxes)
            rows += [(b[1], i, b[2:]) for b in found[i] if b[0] == c]
        rows.sort(key=lambda r: -r[0])
        hits = []
        for _, i, box in rows:
            best = max(((iou(box, b[1:]), k) for k, b in enumerate(truth[i])
                        if b[0] == c and (i, k) not in used),
                       default=(0, 0))
            hits.append(best[0] >= 0.5)
            if hits[-1]:
                used.add((i, best[1]))
        tp = np.cumsum(hits)
        recall = tp / max(total, 1)
        precision = tp / np.arange(1, len(hits) + 1)
        ap.append(np.mean([precision[recall >= r].max(initial=0)
                           for r in np.linspace(0, 1, 101)]))
    return float(np.mean(ap))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--scenes", type=int, default=20000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--export", metavar="FILE.pt",
                    help="export these weights instead of training")
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    x, y = load("train")
    tx, ty = load("t10k")
    test, truth = compose(tx, ty, 1000, np.random.default_rng(args.seed))
    rng = np.random.default_rng(args.seed + 1)
    model = Yolo()
    if args.export:
        model.load_state_dict(torch.load(args.export))
        export(model, test[:1], "yolo_fashion", "cells")
        return
    model = model.to(memory_format=torch.channels_last)
    batch = 64
    steps = args.epochs * (args.scenes // batch)
    step = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
    rate = torch.optim.lr_scheduler.OneCycleLR(step, 4e-3, steps,
                                               pct_start=0.15)
    start = time.time()
    for epoch in range(args.epochs):
        scenes, boxes = compose(x, y, args.scenes, rng)
        t = targets(boxes)
        flip = torch.rand(len(scenes)) < 0.5
        scenes[flip] = scenes[flip].flip(3)
        mirrored = t[flip].flip(3)
        mirrored[:, 0] = torch.where(mirrored[:, 4] > 0, 1 - mirrored[:, 0],
                                     mirrored[:, 0])
        t[flip] = mirrored
        model.train()
        for i in range(len(scenes) // batch):
            part = slice(i * batch, (i + 1) * batch)
            loss = loss_of(model(scenes[part]), t[part])
            step.zero_grad()
            loss.backward()
            step.step()
            rate.step()
        print(f"epoch {epoch + 1}/{args.epochs}: loss {loss.item():.3f}, "
              f"mAP50 {100 * map50(model, test, truth):.2f} %, "
              f"{time.time() - start:.0f} s", flush=True)
        torch.save(model.state_dict(), os.path.join(HERE, "yolo_fashion.pt"))
    export(model, test[:1], "yolo_fashion", "cells")


if __name__ == "__main__":
    main()
