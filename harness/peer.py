"""Runs an ONNX model in another inference engine, for `assay peers`.

    peer.py ENGINE --model FILE.onnx --input NAME=FILE.npy... --output DIR
            --threads N --seconds S [--variant V]

Loads the model in f32, runs it once on the inputs, writes output number i,
counted from 0 in the model's order, to DIR/i.npy, then runs it for about S
seconds (not at all for 0). Prints one JSON object:

    {"engine": "...", "version": "...",  what it was
     "variant": "...",                   one of the engine's ways to run, if any
     "samples": [0.0123, ...]}           seconds of each run, in order

or {"unsupported": "why"} for a model that the engine does not take. Without
--variant the engine tries all its ways and says which was the fastest: later
calls name it. Exit codes: 0 fine, others a failure, with its reason on
standard error.

Any program that does this can be measured: `assay peers --engine ./program`
starts it without ENGINE. It may ignore --variant and say none.
"""
import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import time

LEAST_RUNS = 5  # timed ones, however long they take
TRIAL = 0.3  # seconds a variant is tried for


class Unsupported(Exception):
    """The engine does not take this model."""


class Engine:
    """A model in an engine. `variants` are its ways to run, best guess
    first; load() makes one ready; run() computes into the engine's own
    memory and is what is timed; outputs() gives arrays."""

    package = ""
    variants = ["default"]

    def __init__(self, model, inputs, threads):
        self.model, self.inputs, self.threads = model, inputs, threads

    def load(self, variant):
        raise NotImplementedError

    def run(self):
        raise NotImplementedError

    def outputs(self):
        raise NotImplementedError


class OnnxRuntime(Engine):
    """All levels: the layouts of ORT_ENABLE_ALL do not pay everywhere."""

    package = "onnxruntime"
    variants = ["all", "extended", "all, sleeping threads"]

    def load(self, variant):
        import onnxruntime as ort

        level = ort.GraphOptimizationLevel
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = (
            level.ORT_ENABLE_EXTENDED
            if variant == "extended"
            else level.ORT_ENABLE_ALL
        )
        spins = "0" if "sleeping" in variant else "1"
        options.add_session_config_entry(
            "session.intra_op.allow_spinning", spins
        )
        try:
            self.session = ort.InferenceSession(
                self.model, options, providers=["CPUExecutionProvider"]
            )
        except Exception as e:  # its exceptions have no common base
            raise Unsupported(str(e)) from e

    def run(self):
        self.result = self.session.run(None, self.inputs)

    def outputs(self):
        return self.result


class OpenVino(Engine):
    package = "openvino"
    variants = ["pinned", "unpinned"]

    def load(self, variant):
        import openvino as ov

        core = ov.Core()
        try:
            model = core.read_model(self.model)
            compiled = core.compile_model(
                model,
                "CPU",
                {
                    "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": "f32",
                    "INFERENCE_NUM_THREADS": self.threads,
                    "ENABLE_CPU_PINNING": variant == "pinned",
                },
            )
        except Exception as e:
            raise Unsupported(str(e)) from e
        self.request = compiled.create_infer_request()
        for port in compiled.inputs:
            names = port.get_names()
            array = next(self.inputs[n] for n in self.inputs if n in names)
            self.request.set_tensor(port, ov.Tensor(array))
        self.count = len(compiled.outputs)

    def run(self):
        self.request.infer()

    def outputs(self):
        return [
            self.request.get_output_tensor(i).data for i in range(self.count)
        ]


def teach_onnx2torch(model):
    """What onnx2torch lacks of newer operator sets. Outputs are compared, so
    that a wrong guess is seen."""
    from onnx import defs, numpy_helper
    from onnx2torch.node_converters import registry
    from onnx2torch.onnx_graph import OnnxGraph
    from onnx2torch.utils.common import OnnxMapping, OperationConverterResult
    from torch import nn

    known = registry._CONVERTER_REGISTRY
    constants = {i.name: i for i in model.graph.initializer}

    class Reshape(nn.Module):
        """To a shape that is a number: one that is a tensor is computed anew
        in each run, and keeps Inductor from seeing the graph as a whole."""

        def __init__(self, dims):
            super().__init__()
            self.dims = dims

        def forward(self, x):
            return x.reshape(
                [d if d else x.shape[i] for i, d in enumerate(self.dims)]
            )

    def convert_reshape(node, graph: OnnxGraph):
        data, shape = node.input_values[:2]
        if shape not in constants:
            return general_reshape(node, graph)
        dims = numpy_helper.to_array(constants[shape]).tolist()
        return OperationConverterResult(
            torch_module=Reshape(dims),
            onnx_mapping=OnnxMapping((data,), tuple(node.output_values)),
        )

    def convert_gelu(node, graph: OnnxGraph):
        how = node.attributes.get("approximate", "none")
        return OperationConverterResult(
            torch_module=nn.GELU(approximate=how),
            onnx_mapping=OnnxMapping(
                tuple(node.input_values), tuple(node.output_values)
            ),
        )

    def key_of(kind, version):
        return registry.OperationDescription(defs.ONNX_DOMAIN, kind, version)

    general_reshape = known[key_of("Reshape", 14)]
    for version in 5, 13, 14, 19, 21, 23, 24, 25:
        known[key_of("Reshape", version)] = convert_reshape
    known[key_of("Gelu", 20)] = convert_gelu
    opset = max(i.version for i in model.opset_import if not i.domain)
    for kind in {n.op_type for n in model.graph.node}:
        since = defs.get_schema(kind, opset).since_version
        older = [
            k.version
            for k in known
            if k.operation_type == kind and k.version < since
        ]
        if key_of(kind, since) not in known and older:
            known[key_of(kind, since)] = known[key_of(kind, max(older))]


class Torch(Engine):
    """Converted by onnx2torch; traced and frozen, or compiled by Inductor
    where there is a C++ compiler."""

    package = "torch"
    variants = ["compiled", "frozen", "frozen, channels last"]

    def convert(self):
        import onnx
        import onnx2torch

        model = onnx.load(self.model)
        teach_onnx2torch(model)
        try:
            return onnx2torch.convert(model).eval()
        except Exception as e:
            raise Unsupported(f"onnx2torch: {e or type(e).__name__}") from e

    def load(self, variant):
        import torch

        torch.set_num_threads(self.threads)
        torch.set_float32_matmul_precision("highest")
        torch.backends.mkldnn.enabled = True
        torch.set_grad_enabled(False)
        self.torch, module = torch, self.convert()
        self.given = self.arguments(module)
        if "channels last" in variant:
            last = torch.channels_last
            module = module.to(memory_format=last)
            self.given = [
                x.to(memory_format=last) if x.dim() == 4 else x
                for x in self.given
            ]
        if variant == "compiled":
            import torch._inductor.config as config

            config.freezing = True
            self.call = torch.compile(module)
        else:
            traced = torch.jit.trace(module, self.given, check_trace=False)
            traced = torch.jit.freeze(traced)
            self.call = torch.jit.optimize_for_inference(traced)

    def arguments(self, module):
        """In the order of the converted module's parameters, which is that
        of the model's inputs."""
        return [self.torch.from_numpy(a.copy()) for a in self.inputs.values()]

    def run(self):
        self.result = self.call(*self.given)

    def outputs(self):
        result = self.result
        if not isinstance(result, (list, tuple)):
            result = [result]
        return [r.contiguous().numpy() for r in result]


class Tvm(Engine):
    """Relax's default pipeline for LLVM: untuned."""

    package = "apache-tvm"
    variants = ["default"]

    def load(self, variant):
        os.environ["TVM_NUM_THREADS"] = str(self.threads)
        import onnx
        import tvm
        from tvm import relax
        from tvm.relax.frontend.onnx import from_onnx

        try:
            module = from_onnx(onnx.load(self.model))
            target = tvm.target.Target(
                {"kind": "llvm", "mcpu": host_cpu(), "opt-level": 3}
            )
            built = tvm.compile(module, target)
        except Exception as e:
            raise Unsupported(f"{type(e).__name__}: {e}") from e
        self.machine = relax.VirtualMachine(built, tvm.cpu())
        self.given = [
            tvm.runtime.tensor(a) for a in self.inputs.values()
        ]

    def run(self):
        self.result = self.machine["main"](*self.given)

    def outputs(self):
        if hasattr(self.result, "numpy"):
            return [self.result.numpy()]
        return [r.numpy() for r in self.result]


def host_cpu():
    """What LLVM calls this processor's level."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = file.read().split("flags", 1)[-1].split("\n", 1)[0].split()
    if "avx512_vnni" in flags:
        return "cascadelake"
    if "avx512bw" in flags and "avx512vl" in flags:
        return "x86-64-v4"
    return "x86-64-v3" if "avx2" in flags else "x86-64-v2"


class Ncnn(Engine):
    """Converted by pnnx, in f32: its own shortcuts to 16 bits are off."""

    package = "ncnn"
    variants = ["default", "no Winograd"]

    def load(self, variant):
        import ncnn
        import numpy

        base = os.path.abspath("peer")
        if not os.path.exists(base + ".ncnn.param"):
            self.convert(base)
        self.net = ncnn.Net()
        self.net.opt.num_threads = self.threads
        for option in [
            "use_fp16_packed",
            "use_fp16_storage",
            "use_fp16_arithmetic",
            "use_bf16_storage",
            "use_int8_inference",
        ]:
            setattr(self.net.opt, option, False)
        self.net.opt.use_winograd_convolution = variant == "default"
        if self.net.load_param(base + ".ncnn.param") or self.net.load_model(
            base + ".ncnn.bin"
        ):
            raise Unsupported("ncnn does not load what pnnx made")
        # Batches are no axis of ncnn's arrays, nor are there 64-bit ones.
        self.mats = [
            ncnn.Mat(numpy.ascontiguousarray(narrow(a[0]))).clone()
            for a in self.inputs.values()
        ]
        self.numpy = numpy

    def convert(self, base):
        import pnnx

        tool = os.path.join(os.path.dirname(pnnx.__file__), "bin", "pnnx")
        if not os.path.exists(tool):
            tool = os.path.join(os.path.dirname(sys.executable), "pnnx")
        shapes = ",".join(
            f"[{','.join(map(str, a.shape))}]{short_type(a)}"
            for a in self.inputs.values()
        )
        done = subprocess.run(
            [
                tool,
                self.model,
                f"inputshape={shapes}",
                "fp16=0",
                f"ncnnparam={base}.ncnn.param",
                f"ncnnbin={base}.ncnn.bin",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=os.path.dirname(base),
            text=True,
            check=False,
        )
        if done.returncode or not os.path.exists(base + ".ncnn.param"):
            raise Unsupported("pnnx: " + last_line(done.stdout))

    def run(self):
        extractor = self.net.create_extractor()
        for name, mat in zip(self.net.input_names(), self.mats):
            extractor.input(name, mat)
        self.result = []
        for name in self.net.output_names():
            code, mat = extractor.extract(name)
            if code:
                raise Unsupported(f"ncnn: no output {name}")
            self.result.append(mat)

    def outputs(self):
        return [self.numpy.array(m)[None] for m in self.result]


def narrow(array):
    return array.astype("int32") if array.dtype.kind in "iu" else array


def short_type(array):
    return {"float32": "f32", "int64": "i64", "int32": "i32"}.get(
        str(array.dtype), "f32"
    )


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "failed without a word"


ENGINES = {
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "torch": Torch,
    "tvm": Tvm,
    "ncnn": Ncnn,
}


def measure(engine, seconds, least=LEAST_RUNS):
    """Seconds of each run, after a fifth of the time to get warm."""
    for limit, count, kept in (seconds / 5, 1, False), (seconds, least, True):
        samples, start = [], time.perf_counter()
        while len(samples) < count or time.perf_counter() - start < limit:
            before = time.perf_counter()
            engine.run()
            samples.append(time.perf_counter() - before)
        if kept:
            return samples
    return []


def fastest(make, variants):
    """The variant that takes the least time; those that fail are left out
    unless all do."""
    best, failure = None, None
    for variant in variants:
        try:
            engine = make()
            engine.load(variant)
            engine.run()
            took = min(measure(engine, TRIAL, 3))
        except Exception as e:  # what fails with one may do with another
            failure = e
            continue
        print(f"{variant}: {took * 1e3:.3f} ms", file=sys.stderr)
        if best is None or took < best[0]:
            best = took, variant
    if best is None:
        raise failure
    return best[1]


def peer(options):
    import numpy

    inputs = {}
    for text in options.input:
        name, file = text.split("=", 1)
        inputs[name] = numpy.load(file)
    kind = ENGINES[options.engine]

    def make():
        return kind(options.model, inputs, options.threads)

    report = {
        "engine": options.engine,
        "version": importlib.metadata.version(kind.package),
    }
    try:
        variant = options.variant or fastest(make, kind.variants)
        engine = make()
        engine.load(variant)
        engine.run()
    except Unsupported as e:
        return {**report, "unsupported": str(e)}
    report["variant"] = variant
    for i, array in enumerate(engine.outputs()):
        numpy.save(
            os.path.join(options.output, f"{i}.npy"),
            numpy.ascontiguousarray(array),
        )
    if options.seconds > 0:
        report["samples"] = measure(engine, options.seconds)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("--model", required=True)
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--output", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--variant")
    options = parser.parse_args()
    options.model = os.path.abspath(options.model)
    # Engines read these when they are loaded.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ["MKL_NUM_THREADS"] = str(options.threads)
    # Their chatter must not mix with the report; what they leave lying
    # around goes with the folder.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    options.output = os.path.abspath(options.output)
    for i, text in enumerate(options.input):
        name, file = text.split("=", 1)
        options.input[i] = f"{name}={os.path.abspath(file)}"
    os.makedirs(options.output, exist_ok=True)
    os.chdir(options.output)
    os.environ.setdefault(
        "TORCHINDUCTOR_CACHE_DIR", os.path.join(options.output, "inductor")
    )
    json.dump(peer(options), out)
    out.close()


if __name__ == "__main__":
    main()
