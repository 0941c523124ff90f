//! Brains that answer the observations of other programs.

use std::path::PathBuf;

use pyo3::prelude::*;
use tectum_control::scenario::Scenario;
use tectum_link::{Address, ServeSettings, Served, Token};

use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::receipt::Receipt;

/// A server of a brain, from `serve` on until `close`; a context manager.
///
/// Each client has a brain of its own.
#[pyclass(frozen, module = "tectum")]
pub struct Server {
    address: String,
    /// None after `close`.
    inner: Exclusive<Option<tectum_link::Server>>,
}

impl Server {
    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&tectum_link::Server) -> PyResult<T>,
    ) -> PyResult<T> {
        let inner = self.inner.lock(py)?;
        let server = inner
            .as_ref()
            .ok_or_else(|| tectum::Error::invalid("the server is closed"));
        work(server.or_raise()?)
    }
}

#[pymethods]
impl Server {
    /// Where it listens: `ws://HOST:PORT`.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// What it has counted so far: clients, answers, errors, by name.
    ///
    /// Raises ValueError after `close`.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        self.with(py, |server| crate::json::to_python(py, &server.counts()))
    }

    /// On which device and by which code the answers so far were computed, with their latencies.
    ///
    /// Raises ValueError after `close`.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        let _call = process::enter(py)?;
        self.with(py, |server| Ok(Receipt::new(server.receipt())))
    }

    /// Ends the server and the connections of its clients; again, it does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let server = self.inner.lock(py)?.take();
        // Its threads end first.
        process::detach(py, move || drop(server));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<tectum server at {}>", self.address)
    }
}

/// Serves the brain of a scenario: other programs send observations over WebSocket and receive
/// actions. An unchanged `openpi-client` works; docs/robots.md has the protocol.
///
/// `scenario` is a built-in name or the path of a `.toml` file, whose body states the channels and
/// is not stepped; `brain` replaces its brain. An address of other machines needs `token_file` or
/// the variable TECTUM_TOKEN, and clients must show the token. More than `clients` at the same time
/// are refused.
///
/// Raises ValueError for an unknown name and for an address without a token, DataError naming file
/// and line, OSError for an address that is in use.
///
/// >>> import tectum as tt
/// >>> with tt.serve("pendulum", address="ws://127.0.0.1:0", brain="zero") as server:
/// ...     server.counts["answers"]
/// 0
#[pyfunction]
#[pyo3(signature = (scenario, *, address = "ws://127.0.0.1:8000", brain = None, device = DeviceArgument::Id("auto".to_owned()), clients = 8, token_file = None))]
pub fn serve(
    py: Python<'_>,
    scenario: PathBuf,
    address: &str,
    brain: Option<String>,
    device: DeviceArgument<'_>,
    clients: u16,
    token_file: Option<PathBuf>,
) -> PyResult<Server> {
    let _call = process::enter(py)?;
    let settings = ServeSettings {
        token: Token::find(token_file.as_deref()).or_raise()?,
        max_sessions: usize::from(clients),
        ..ServeSettings::new(Address::parse(address).or_raise()?)
    };
    let (name, device) = (scenario.to_string_lossy().into_owned(), device.open(py)?);
    let server = run_long(py, move || {
        let mut scenario = Scenario::open(&name)?;
        brain.map_or(Ok(()), |brain| scenario.set_brain(&brain))?;
        let served = Served::of_scenario(scenario, device)?;
        tectum_link::Server::start(served, &settings)
    })?;
    Ok(Server {
        address: server.address().to_string(),
        inner: Exclusive::new(Some(server)),
    })
}
