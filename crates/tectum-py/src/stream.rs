//! Streams: runs of plans that are executed in order, while Python continues.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::Submission as Submitted;

use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::plan::{Executable, SubmittedRun};
use crate::process;

/// A queue of runs, executed one after the other on a thread of its own.
///
/// `submit(executable, **inputs)` returns at once; `wait()` of what it returns has the outputs, as
/// `executable.run` does. Streams are ordered among each other only by events. On a GPU the next
/// run is submitted while the one before is executed. An executable takes part in one run at a
/// time: a call that uses it, or submits it again, waits until the run has ended.
///
/// Runs end whether or not they are waited for, also after the stream is deleted.
///
/// >>> import tectum as tt
/// >>> plan = tt.Plan()
/// >>> plan.unary("relu", plan.input("x", 3), plan.output("y", 3))
/// >>> executable, stream = plan.compile(), tt.Stream()
/// >>> submission = stream.submit(executable, x=[-1.0, 0.5, 2.0])
/// >>> submission.wait()["y"].tolist()
/// [0.0, 0.5, 2.0]
#[pyclass(frozen, module = "tectum")]
pub struct Stream {
    /// None only while it is dropped.
    inner: Option<tectum::Stream>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A stream that is dropped waits for its runs: not on a thread with the interpreter's lock,
        // and not in a fork, where its thread is missing.
        let Some(stream) = self.inner.take() else {
            return;
        };
        if process::leaks() {
            std::mem::forget(stream);
            return;
        }
        // Without a thread the stream is dropped here.
        let _ = std::thread::Builder::new().spawn(move || drop(stream));
    }
}

/// A point in a stream: it is signaled when everything that was submitted to the stream before it
/// has ended, with or without an error.
#[pyclass(frozen, module = "tectum")]
pub struct Event {
    inner: tectum::Event,
}

/// A submitted run.
#[pyclass(frozen, module = "tectum")]
pub struct Submission {
    /// None after it was waited for.
    inner: Exclusive<Option<Submitted<SubmittedRun>>>,
}

impl Stream {
    fn stream(&self) -> PyResult<&tectum::Stream> {
        let gone = || PyRuntimeError::new_err("the stream is deleted");
        self.inner.as_ref().ok_or_else(gone)
    }
}

#[pymethods]
impl Stream {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let _call = process::enter(py)?;
        Ok(Self {
            inner: Some(tectum::Stream::new().or_raise()?),
        })
    }

    /// Adds a run to the end of the queue. Inputs that are not given keep their values.
    ///
    /// Raises KeyError for an unknown input, ValueError for another number of elements, and for a
    /// plan with functions of Python, which run on the CPU: use `executable.run` for these.
    #[pyo3(signature = (executable, /, **inputs))]
    fn submit(
        &self,
        py: Python<'_>,
        executable: &Bound<'_, Executable>,
        inputs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Submission> {
        let _call = process::enter(py)?;
        let run = executable.get().submitted(py, inputs)?;
        Ok(Submission {
            inner: Exclusive::new(Some(self.stream()?.submit(run))),
        })
    }

    /// The point after everything that was submitted so far.
    fn event(&self, py: Python<'_>) -> PyResult<Event> {
        let _call = process::enter(py)?;
        Ok(Event {
            inner: self.stream()?.event(),
        })
    }

    /// Makes everything submitted from now on wait for an event of this stream or of any other.
    /// Returns at once.
    fn wait_for(&self, py: Python<'_>, event: &Event) -> PyResult<()> {
        let _call = process::enter(py)?;
        self.stream()?.wait_for(&event.inner);
        Ok(())
    }

    /// Waits until everything that was submitted so far has ended.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        self.event(py)?.wait(py)
    }
}

#[pymethods]
impl Event {
    /// Whether it is signaled.
    #[getter]
    fn is_signaled(&self, py: Python<'_>) -> PyResult<bool> {
        let _call = process::enter(py)?;
        Ok(self.inner.is_signaled())
    }

    /// Waits until it is signaled.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let event = self.inner.clone();
        run_long(py, move || {
            event.wait();
            Ok(())
        })
    }
}

#[pymethods]
impl Submission {
    /// Whether the run has ended, so that `wait` returns at once; also true after that.
    #[getter]
    fn is_done(&self, py: Python<'_>) -> PyResult<bool> {
        let _call = process::enter(py)?;
        let inner = self.inner.lock(py)?;
        Ok(inner.as_ref().is_none_or(Submitted::is_done))
    }

    /// Waits for the run, and returns a dict of the outputs.
    ///
    /// Raises RuntimeError if it was waited for before, and what the device reports.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let again = || PyRuntimeError::new_err("the submission was waited for already");
        let submission = self.inner.lock(py)?.take().ok_or_else(again)?;
        let run = run_long(py, move || {
            let (run, stats) = submission.wait();
            stats.map(|_| run)
        })?;
        let outputs = PyDict::new(py);
        for (name, elements) in run.outputs {
            outputs.set_item(name, elements.into_array(py))?;
        }
        Ok(outputs)
    }
}
