"""Neural workloads in real time, from one source, on GPUs and CPUs, with receipts."""

import atexit
import logging

from ._tectum import (
    ActionChannel,
    Area,
    BodyBatch,
    BodySpec,
    Buffer,
    Cancelled,
    CompiledGraph,
    DataError,
    Decoder,
    Device,
    DeviceLost,
    Encoder,
    Event,
    Executable,
    Field,
    FieldReport,
    Generation,
    Genome,
    Graph,
    Kernel,
    KernelCase,
    KernelCheck,
    KernelCheckRow,
    MismatchError,
    NativeBody,
    NativeBrain,
    Network,
    Neurons,
    Node,
    ObservationChannel,
    Plan,
    Policy,
    PotentialMonitor,
    Program,
    Receipt,
    Recording,
    RemoteBody,
    RemotePolicy,
    Repetition,
    Run,
    Server,
    SpikeCounts,
    SpikeMonitor,
    SpikingNetwork,
    StopSignal,
    Stream,
    Submission,
    TextStream,
    Trainer,
    UnsupportedError,
    View,
    __version__,
    array_address,
    body,
    brain,
    check_kernel,
    devices,
    end as _end,
    program,
    repeat,
    run,
    run_loop,
    sample,
    samples,
    serve,
)
from .mujoco import MujocoBody

# As libraries do: without a handler of the program, nothing is shown.
logging.getLogger("tectum").addHandler(logging.NullHandler())


def _end_threads() -> None:
    """Keeps threads that are inside tectum out of an interpreter that ends, which would abort the process."""
    if _end(1.0):
        return
    # A function of Python that tectum called is still running: it is ended by an exception.
    import ctypes
    import sys
    import threading

    for thread in sys._current_frames():
        if thread != threading.get_ident():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))
    _end(1.0)


atexit.register(_end_threads)
del atexit, logging

__all__ = [
    "ActionChannel",
    "Area",
    "BodyBatch",
    "BodySpec",
    "Buffer",
    "Cancelled",
    "CompiledGraph",
    "DataError",
    "Decoder",
    "Device",
    "DeviceLost",
    "Encoder",
    "Event",
    "Executable",
    "Field",
    "FieldReport",
    "Generation",
    "Genome",
    "Graph",
    "Kernel",
    "KernelCase",
    "KernelCheck",
    "KernelCheckRow",
    "MismatchError",
    "MujocoBody",
    "NativeBody",
    "NativeBrain",
    "Network",
    "Neurons",
    "Node",
    "ObservationChannel",
    "Plan",
    "Policy",
    "PotentialMonitor",
    "Program",
    "Receipt",
    "Recording",
    "RemoteBody",
    "RemotePolicy",
    "Repetition",
    "Run",
    "Server",
    "SpikeCounts",
    "SpikeMonitor",
    "SpikingNetwork",
    "StopSignal",
    "Stream",
    "Submission",
    "TextStream",
    "Trainer",
    "UnsupportedError",
    "View",
    "__version__",
    "array_address",
    "body",
    "brain",
    "check_kernel",
    "devices",
    "program",
    "repeat",
    "run",
    "run_loop",
    "sample",
    "samples",
    "serve",
]
