//! Bodies and brains in other processes, and brains that are served to them.

mod lent_brain;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use tectum::Error;
use tectum_control::body as bodies;
use tectum_control::brain::Brain;
use tectum_control::scenario::Scenario;
use tectum_link::{
    Address, ArmSwitch, LinkSettings, Reach, RemotePolicySpec, SerialSettings, ServeSettings,
    Served, Token,
};

use self::lent_brain::LentBrain;
use crate::body::{BodySpec, NativeBody, spec_of};
use crate::brain::{NativeBrain, PythonBrain};
use crate::closed_loop::clock_kind;
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::receipt::Receipt;

/// Clients at the same time by default, each with a brain of its own.
const CLIENTS: u16 = 8;

/// A server of a brain, from `serve` on until `close`; a context manager.
///
/// Each client has a brain of its own.
#[pyclass(frozen, module = "tectum")]
pub struct Server {
    address: String,
    /// None after `close`.
    inner: Exclusive<Option<tectum_link::Server>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its threads may call brains of Python.
        if let Ok(mut server) = self.inner.lock_detached() {
            server.take().into_iter().for_each(process::drop_detached);
        }
    }
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
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<tectum server at {}>", self.address)
    }
}

/// A body in another process or on a serial port, for one loop or to be stepped by hand; a context
/// manager.
///
/// `address` is `ws://HOST:PORT` of a body that waits, `listen:ws://HOST:PORT` where this process
/// waits for the body, or `serial:/dev/ttyUSB0`. `spec` is compared with what the body states of
/// itself; a machine on a serial port states nothing, and needs it. The first connection, an answer
/// of a body that is stepped by hand, and the first observation of an episode may take `wait`
/// seconds. In real time the last action is held for `hold` seconds after the last observation, by
/// default min(3 periods, 0.1 s) and at least 1.5 periods; then the body gets its safe action until
/// it is armed again. An address of other machines needs `token_file` or the variable TECTUM_TOKEN.
/// docs/robots.md has the protocol.
///
/// Raises ValueError for an address without a token and for a body that differs, DataError without a
/// connection in time, OSError for a port that is in use or does not exist.
#[pyclass(frozen, extends = NativeBody, module = "tectum")]
pub struct RemoteBody {
    peer: String,
    address: Option<String>,
    switch: ArmSwitch,
}

#[pymethods]
impl RemoteBody {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords of a constructor")]
    #[pyo3(signature = (address, *, spec = None, wait = 5.0, hold = None, token_file = None, baud = 115_200, checksum = false))]
    fn new(
        py: Python<'_>,
        address: String,
        spec: Option<BodySpec>,
        wait: f64,
        hold: Option<f64>,
        token_file: Option<PathBuf>,
        baud: u32,
        checksum: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let _call = process::enter(py)?;
        let reach = if let Some(address) = address.strip_prefix("listen:") {
            Reach::Listen(Address::parse(address).or_raise()?)
        } else if let Some(path) = address.strip_prefix("serial:") {
            let spec = spec.as_ref().ok_or_else(|| {
                PyValueError::new_err(format!(
                    "body {address}: a machine on a serial port states nothing of itself: spec is needed"
                ))
            })?;
            Reach::Serial(Box::new(SerialSettings {
                baud,
                checksum,
                ..SerialSettings::new(path, spec.inner.clone())
            }))
        } else {
            Reach::Connect(Address::parse(&address).or_raise()?)
        };
        let mut settings = LinkSettings::new(reach);
        settings.token = Token::find(token_file.as_deref()).or_raise()?;
        settings.wait = seconds("wait", wait, 86_400.0)?;
        settings.hold_s = hold
            .map(|hold| seconds("hold", hold, 10.0).map(|hold| hold.as_secs_f64()))
            .transpose()?;
        if let Some(spec) = &spec {
            settings.compare_with(&spec.inner);
        }
        let name = address.clone();
        let body = run_long(py, move || {
            tectum_link::RemoteBody::open_with(&name, settings, &mut |address| {
                tracing::info!(%address, "waiting for the body");
            })
        })?;
        let remote = Self {
            peer: body.peer().to_owned(),
            address: body.address().map(ToString::to_string),
            switch: body.arm_switch(),
        };
        let native = NativeBody::new(address, None, Box::new(body));
        Ok(PyClassInitializer::from(native).add_subclass(remote))
    }

    /// The body's own name.
    #[getter]
    fn peer(&self) -> &str {
        &self.peer
    }

    /// Where it is reached, `ws://HOST:PORT`; None on a serial port.
    #[getter]
    fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Arms the body again after a stop: from its next observation on the brain is queried. It may
    /// be called from any thread, also while a loop runs. Without a connection, and before a stop,
    /// it does nothing.
    fn arm(&self, py: Python<'_>) -> PyResult<()> {
        let _call = process::enter(py)?;
        self.switch.arm();
        Ok(())
    }

    /// Sends the safe action and ends the connection; again, it does nothing.
    ///
    /// Raises ValueError while a loop owns the body.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let _call = process::enter(py)?;
        slf.as_super().get().close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        Self::close(slf)
    }
}

/// A time from an argument.
fn seconds(name: &str, seconds: f64, limit: f64) -> PyResult<Duration> {
    if seconds > 0.0 && seconds <= limit {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(PyValueError::new_err(format!(
        "{name} is {seconds}, needs seconds above 0, at most {limit}"
    )))
}

/// A policy server that speaks openpi's protocol, as the brain of a body in this process.
///
/// `address` is `ws://HOST:PORT`; `body` a body, its `BodySpec`, or the name of a built-in one. The
/// server answers an observation with a chunk of actions, a row for each period; the next chunk is
/// requested after `rows` of them, by default half. Channels of one number are sent as the array
/// "observation/state", arrays as "observation/NAME" or under the name that `keys` has for the
/// channel, `prompt` as the text "prompt". The first connection, and an answer under `clock="sim"`,
/// may take `wait` seconds. Under `clock="real"` a tick never waits: one without a row is held.
///
/// Raises ValueError for an address of other machines without a token, DataError without a
/// connection in time.
#[pyfunction]
#[pyo3(name = "RemotePolicy", signature = (address, body, *, rows = None, prompt = None, keys = None, wait = 60.0, token_file = None, clock = "real"))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn remote_policy(
    py: Python<'_>,
    address: String,
    body: &Bound<'_, PyAny>,
    rows: Option<u64>,
    prompt: Option<String>,
    keys: Option<BTreeMap<String, String>>,
    wait: f64,
    token_file: Option<PathBuf>,
    clock: &str,
) -> PyResult<NativeBrain> {
    let _call = process::enter(py)?;
    let (body, clock, keys) = (spec_of(body)?, clock_kind(clock)?, keys.unwrap_or_default());
    let is_array = |name: &str| {
        let mut channels = body.observation.iter();
        channels.any(|channel| channel.name == name && channel.is_array())
    };
    if let Some(name) = keys.keys().find(|name| !is_array(name)) {
        let body = &body.name;
        return Err(PyValueError::new_err(format!(
            "keys: {name:?} is no channel of body {body} that is an array"
        )));
    }
    let spec = RemotePolicySpec {
        remote: address,
        rows,
        prompt,
        wait: seconds("wait", wait, 86_400.0)?.as_secs_f64(),
        token_file: token_file.map(|path| path.to_string_lossy().into_owned()),
        keys,
    };
    run_long(py, move || {
        let policy = tectum_link::RemotePolicy::connect(&spec, &body, clock)?;
        NativeBrain::new(Box::new(policy), body)
    })
}

/// What `serve` serves.
enum Source {
    /// A scenario by name or path, and its other brain.
    Scenario(String, Option<String>),
    /// A brain for one client at a time.
    Lent(Arc<LentBrain>),
    /// An object of Python, for one client at a time.
    Object(Py<PyAny>),
    /// A function of Python that makes a brain for each client.
    Function(Py<PyAny>),
}

impl Source {
    fn of(
        source: &Bound<'_, PyAny>,
        body: Option<&bodies::BodySpec>,
        brain: Option<String>,
    ) -> PyResult<Self> {
        let found = if let Ok(brain) = source.cast::<NativeBrain>() {
            Self::Lent(LentBrain::of(brain, body)?)
        } else if let Ok(path) = source.extract::<PathBuf>() {
            return Ok(Self::Scenario(path.to_string_lossy().into_owned(), brain));
        } else if source.hasattr("tick")? && !source.is_instance_of::<PyType>() {
            Self::Object(source.clone().unbind())
        } else if source.is_callable() {
            Self::Function(source.clone().unbind())
        } else {
            return Err(PyTypeError::new_err(format!(
                "serve: {} is no scenario, no brain and no function that makes one",
                source.get_type()
            )));
        };
        match brain {
            None => Ok(found),
            Some(_) => Err(PyValueError::new_err("brain replaces that of a scenario")),
        }
    }

    /// Clients at the same time.
    fn clients(&self, stated: Option<u16>) -> PyResult<u16> {
        match self {
            Self::Scenario(..) | Self::Function(_) => Ok(stated.unwrap_or(CLIENTS)),
            Self::Lent(_) | Self::Object(_) if stated.is_some_and(|clients| clients > 1) => {
                Err(PyValueError::new_err(
                    "a brain has one state, and serves one client at a time; give a function that makes a brain for each client",
                ))
            }
            Self::Lent(_) | Self::Object(_) => Ok(1),
        }
    }

    /// The constants of the body that the brains are made for, where no scenario states them.
    fn spec(&self, body: Option<bodies::BodySpec>) -> PyResult<Option<bodies::BodySpec>> {
        match (self, body) {
            (Self::Scenario(..), None) => Ok(None),
            (Self::Scenario(..), Some(_)) => {
                Err(PyValueError::new_err("the scenario states its body"))
            }
            (Self::Lent(brain), _) => Ok(Some(brain.spec().clone())),
            (_, Some(body)) => Ok(Some(body)),
            (_, None) => Err(PyValueError::new_err(
                "body is needed: a brain of Python does not state its channels",
            )),
        }
    }

    /// A brain for a client, and for a body.
    fn brain(&self, body: &bodies::BodySpec) -> tectum::Result<Box<dyn Brain>> {
        match self {
            Self::Scenario(..) => Err(Error::invalid("a scenario makes its brains itself")),
            Self::Lent(brain) => Ok(brain.for_client()),
            Self::Object(object) => python_brain(body, |py| Ok(object.bind(py).clone())),
            Self::Function(function) => python_brain(body, |py| function.bind(py).call0()),
        }
    }
}

/// A brain that Python has or makes.
fn python_brain(
    body: &bodies::BodySpec,
    get: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyAny>>,
) -> tectum::Result<Box<dyn Brain>> {
    let made = process::attach(|py| {
        let object = get(py)?;
        if let Ok(native) = object.cast::<NativeBrain>() {
            return Ok(LentBrain::of(native, Some(body))?.for_client());
        }
        let mut brain = PythonBrain::new(&object, None)?;
        brain.episode_ended();
        Ok(Box::new(brain) as Box<dyn Brain>)
    });
    made.map_err(|error: PyErr| Error::data(format!("brain: {error}")))
}

/// Serves a brain: other programs send observations over WebSocket and receive actions. An
/// unchanged `openpi-client` works; docs/robots.md has the protocol.
///
/// `source` is a scenario, by its built-in name or the path of a `.toml` file, whose body states the
/// channels and is not stepped, and whose brain `brain` replaces. Or it is a brain: a built-in one, a
/// policy, or an object with a method `tick(observation)`, which serves one client at a time and whose
/// `episode_ended()` is called before each. Or a function that makes a brain for each client. For
/// brains of Python `body` states the channels: a body, its `BodySpec`, or a name.
///
/// An address of other machines needs `token_file` or the variable TECTUM_TOKEN, and clients must
/// show the token. More than `clients` at the same time are refused, by default 8.
///
/// Raises ValueError for an unknown name and for an address without a token, DataError naming file
/// and line, OSError for an address that is in use.
///
/// >>> import tectum as tt
/// >>> with tt.serve("pendulum", address="ws://127.0.0.1:0", brain="zero") as server:
/// ...     server.counts["answers"]
/// 0
#[pyfunction]
#[pyo3(signature = (source, *, body = None, address = "ws://127.0.0.1:8000", brain = None, device = DeviceArgument::Id("auto".to_owned()), clients = None, token_file = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn serve(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    body: Option<&Bound<'_, PyAny>>,
    address: &str,
    brain: Option<String>,
    device: DeviceArgument<'_>,
    clients: Option<u16>,
    token_file: Option<PathBuf>,
) -> PyResult<Server> {
    let _call = process::enter(py)?;
    let body = body.map(spec_of).transpose()?;
    let source = Source::of(source, body.as_ref(), brain)?;
    let settings = ServeSettings {
        token: Token::find(token_file.as_deref()).or_raise()?,
        max_sessions: usize::from(source.clients(clients)?),
        ..ServeSettings::new(Address::parse(address).or_raise()?)
    };
    let (spec, device) = (source.spec(body)?, device.open(py)?);
    let server = run_long(py, move || {
        let served = match (source, spec) {
            (Source::Scenario(name, brain), _) => {
                let mut scenario = Scenario::open(&name)?;
                brain.map_or(Ok(()), |brain| scenario.set_brain(&brain))?;
                Served::of_scenario(scenario, device)?
            }
            (source, Some(spec)) => {
                let device = device.map_or_else(|| tectum::Device::open("cpu"), Ok)?;
                let own = spec.clone();
                Served::new(spec, device, move || source.brain(&own))?
            }
            (_, None) => return Err(Error::invalid("the body is not stated")),
        };
        tectum_link::Server::start(served, &settings)
    })?;
    Ok(Server {
        address: server.address().to_string(),
        inner: Exclusive::new(Some(server)),
    })
}
