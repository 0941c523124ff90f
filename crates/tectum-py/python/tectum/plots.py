"""Plots of runs, recordings and monitors by matplotlib, which ``pip install tectum[plot]`` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numpy.typing import NDArray

    from . import ActionChannel, ObservationChannel, PotentialMonitor, Recording, Run, SpikeMonitor

__all__ = ["plot_potentials", "plot_recording", "plot_run", "plot_spikes"]


def plot_run(run: Run) -> Figure:
    """One panel for each channel of one number over time, observations above actions; ends of episodes are dotted, periods with the safe action shaded."""

    def name(channel: ObservationChannel | ActionChannel) -> str:
        return f"{channel.name}\n({channel.unit})" if channel.unit else channel.name

    numbers, place = {}, 0
    for channel in run.spec.observation:
        if not channel.shape:
            numbers[place] = name(channel)
        place += int(np.prod(channel.shape))
    return _plot_channels(run, run.observations[:, list(numbers)], list(numbers.values()), [name(channel) for channel in run.spec.action])


def plot_recording(recording: Recording) -> Figure:
    """The panels of ``plot_run``; a recording has no units."""
    return _plot_channels(recording, recording.observations, recording.observation_names, recording.action_names)


def _plot_channels(run: Run | Recording, numbers: NDArray[np.float32], observations: list[str], actions: list[str]) -> Figure:
    from matplotlib import pyplot

    names = [*observations, *actions]
    columns = [*numbers.T, *run.actions.T]
    figure, panels = pyplot.subplots(len(names), 1, sharex=True, figsize=(8, 1.4 * len(names)), squeeze=False, layout="constrained")
    for index, (panel, name, values) in enumerate(zip(panels[:, 0], names, columns)):
        panel.plot(run.t, values, color="C0" if index < len(observations) else "C1", linewidth=1.0)
        panel.set_ylabel(name)
        for end in run.t[run.ended]:
            panel.axvline(end, color="0.6", linestyle=":", linewidth=1.0)
        if run.fallback.any():
            panel.fill_between(run.t, 0, 1, where=run.fallback, transform=panel.get_xaxis_transform(), color="C3", alpha=0.2, linewidth=0)
    panels[-1, 0].set_xlabel("time (s)")
    return figure


def plot_spikes(monitor: SpikeMonitor, axes: Axes | None = None) -> Axes:
    """A raster: a mark for each firing, bursts to the right, neurons upwards."""
    axes = _axes(axes)
    axes.scatter(monitor.t, monitor.i, s=4, marker="|", linewidths=0.8)
    axes.set_xlabel("burst")
    axes.set_ylabel("neuron")
    return axes


def plot_potentials(monitor: PotentialMonitor, axes: Axes | None = None) -> Axes:
    """A line for each neuron, in units of psp times weight."""
    axes = _axes(axes)
    for neuron, values in zip(monitor.i, np.asarray(monitor.v).T):
        axes.plot(monitor.t, values, linewidth=1.0, label=f"neuron {neuron}")
    axes.set_xlabel("burst")
    axes.set_ylabel("potential (psp · weight)")
    if len(monitor.i) <= 10:
        axes.legend()
    return axes


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(8, 3), layout="constrained")[1]
