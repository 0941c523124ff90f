//! Bodies outside of the process in scenarios: the keys of `[body]`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tectum::{Error, Result};
use tectum_control::body::link::LINK_FILE;
use tectum_control::body::{
    Body, BodySpec, Descriptor, Family, PlantSettings, Start, StatedChannel, Step, register_family,
    task,
};
use tectum_control::brain::register_brain;
use tectum_control::replay::Replay;
use tectum_control::scenario::{Key, Section};
use toml::{Table, Value};

use crate::handshake::Stated;
use crate::serial::SerialSettings;
use crate::sources::{WithSources, spec_with};
use crate::{Address, LinkSettings, Reach, RemoteBody, RemotePolicySpec, Token, link};

pub(crate) mod file;
mod ros2;

/// What a body is reached through, which decides its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Socket,
    Serial,
    Ros2,
}

impl Carrier {
    fn of(name: &str) -> Self {
        if name.starts_with(SERIAL_PORT) {
            Self::Serial
        } else if name.starts_with(ros2::PREFIX) {
            Self::Ros2
        } else {
            Self::Socket
        }
    }
}

/// How the names of bodies begin that we connect to, of those that connect to us, and of machines on
/// serial ports.
const CONNECT: &str = "ws://";
const LISTEN: &str = "listen:";
const SERIAL_PORT: &str = "serial:";
/// Bits per second of a serial port by default.
const BAUD: u32 = 115_200;
/// The maximum of bits per second: that of USB's full speed.
const MAX_BAUD: u64 = 12_000_000;
/// How long a first connection and an answer may take by default, in seconds.
const WAIT_S: f64 = 5.0;

static DESCRIPTOR: Descriptor =
    Descriptor::with_settings::<RemoteSettings>("remote", &[Start::Random], || {
        task::keep(0, 0.0, 1.0)
    });

static REMOTE: Family = Family {
    prefix: CONNECT,
    key: "remote",
    about: "address of a body in another process, `ws://HOST:PORT`, to which the loop connects",
    descriptor: &DESCRIPTOR,
    read_keys,
    example: EXAMPLE,
    heading: "A body in another process has keys of its own; [robots.md](robots.md) explains them. What a scenario states of its channels is compared with what the body states:",
};

static LISTENER: Family = Family {
    prefix: LISTEN,
    key: "listen",
    about: "address `ws://HOST:PORT` at which the loop waits until the body connects",
    descriptor: &DESCRIPTOR,
    read_keys,
    example: "",
    heading: "",
};

static SERIAL: Family = Family {
    prefix: SERIAL_PORT,
    key: "serial",
    about: "serial port of a microcontroller, `/dev/ttyUSB0`",
    descriptor: &DESCRIPTOR,
    read_keys: read_serial_keys,
    example: SERIAL_EXAMPLE,
    heading: "A microcontroller on a serial port states nothing of itself, so that the scenario states all of it; [robots.md](robots.md) has the lines byte by byte. It needs clock `\"real\"`:",
};

const SERIAL_EXAMPLE: &str = r#"[body]
serial = "/dev/ttyUSB0"
baud = 115200
checksum = true
period = 0.02
wait = 5.0
hold = 0.06
safe_action = [0.0]

[[body.observation]]
name = "angle"
unit = "rad"
low = -3.2
high = 3.2

[[body.action]]
name = "torque"
unit = "N m"
low = -2.0
high = 2.0
"#;

const EXAMPLE: &str = r#"[body]
remote = "ws://127.0.0.1:9000"
period = 0.02
wait = 5.0
hold = 0.06
token_file = "robot.token"
safe_action = [0.0]

[[body.observation]]
name = "angle"
unit = "rad"
low = -3.2
high = 3.2

[[body.action]]
name = "torque"
unit = "N m"
low = -2.0
high = 2.0
"#;

/// What is called with the address at which a scenario waits for its body.
static WAITING: OnceLock<fn(&Address)> = OnceLock::new();

/// Makes bodies and policies outside of the process words of scenarios: the keys `remote`, `listen`,
/// `serial` and `ros2` of `[body]`, names `ws://HOST:PORT`, and the brain `remote`. `report` is called
/// with the address at which a scenario waits for its body; that of the first call is used. It may be
/// called again.
///
/// # Errors
/// `Invalid` where another crate has registered the same keys.
pub fn register(report: fn(&Address)) -> Result<()> {
    let _ = WAITING.set(report);
    static BRAIN: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    register_family(&REMOTE)?;
    register_family(&LISTENER)?;
    register_family(&SERIAL)?;
    register_family(&ros2::FAMILY)?;
    // A brain is registered once in a process.
    BRAIN
        .get_or_init(|| {
            let registered = register_brain::<RemotePolicySpec>("remote");
            registered.map_err(|error| error.to_string())
        })
        .clone()
        .map_err(Error::invalid)
}

/// A body outside of the process, and the keys that a scenario states.
#[derive(Clone, Serialize)]
pub struct RemoteSettings {
    #[serde(flatten)]
    keys: Table,
    #[serde(skip)]
    shared: Arc<Shared>,
}

/// What all bodies of the same settings share.
struct Shared {
    name: String,
    spec: BodySpec,
    /// The body's own name.
    peer: String,
    /// The copy of what the body states, for the run folder.
    text: String,
    source: Source,
}

enum Source {
    Live(Box<Live>),
    /// A run folder, whose recording replaces the body.
    Recorded(PathBuf),
}

struct Live {
    settings: LinkSettings,
    /// Names and settings of its sources.
    sources: Vec<(String, LinkSettings)>,
    /// The connections that a check of the scenario made, for the loop.
    spare: Mutex<Option<WithSources>>,
}

impl Live {
    /// What is known of the body, and the names of its parts, if this process is connected to all.
    fn known(&self, name: &str) -> Option<Result<(BodySpec, String)>> {
        // Several robots may be behind one router.
        let is_own = |spec: &BodySpec| match &self.settings.reach {
            Reach::Ros2(ros2) => ros2.body == *spec,
            _ => true,
        };
        let body = link::connected(name).filter(|known| is_own(&known.spec))?;
        let sources = self.sources.iter().map(|(name, _)| link::connected(name));
        let sources: Option<Vec<_>> = sources.collect();
        let sources = sources?;
        let spec = spec_with(&body.spec, sources.iter().map(|source| &source.spec));
        let checked = self.settings.stated.check(&body.spec);
        let checked = checked.map_err(|error| error.at(format_args!("body {name}")));
        Some(checked.and(spec).map(|spec| (spec, body.peer.clone())))
    }

    /// Connects to the body and to its sources.
    fn open(&self, name: &str) -> Result<WithSources> {
        let open = |name: &str, settings: &LinkSettings| {
            RemoteBody::open_with(name, settings.clone(), &mut |address| {
                if let (Reach::Listen(_), Some(report)) = (&settings.reach, WAITING.get()) {
                    report(address);
                }
            })
        };
        let body = open(name, &self.settings)?;
        let sources = self.sources.iter();
        let sources = sources.map(|(name, settings)| open(name, settings));
        WithSources::new(body, sources.collect::<Result<_>>()?)
            .map_err(|error| error.at(format_args!("body {name}")))
    }
}

impl fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteSettings").field(&self.keys).finish()
    }
}

impl RemoteSettings {
    /// Connects to a body and its sources.
    fn connect(name: &str, keys: Table) -> Result<Self> {
        let sources = keys.get("source").and_then(Value::as_array);
        let sources = sources.into_iter().flatten().map(|source| {
            let keys = source.as_table().cloned().unwrap_or_default();
            let name = keys.get("name").and_then(Value::as_str).unwrap_or("");
            Ok((name.to_owned(), link_settings(name, &keys)?))
        });
        let live = Live {
            settings: link_settings(name, &keys)?,
            sources: sources.collect::<Result<_>>()?,
            spare: Mutex::new(None),
        };
        let (spec, peer) = match live.known(name) {
            Some(known) => known?,
            None => {
                let body = live.open(name)?;
                let known = (body.spec().clone(), body.peer().to_owned());
                *live.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
                known
            }
        };
        Ok(Self::of(
            name,
            keys,
            spec,
            &peer,
            Source::Live(Box::new(live)),
        ))
    }

    fn of(name: &str, keys: Table, spec: BodySpec, peer: &str, source: Source) -> Self {
        Self {
            keys,
            shared: Arc::new(Shared {
                name: name.to_owned(),
                text: file::write(&spec, peer),
                spec,
                peer: peer.to_owned(),
                source,
            }),
        }
    }

    /// The body of a run folder.
    fn recorded(name: &str, keys: Table, folder: &Path) -> Result<Self> {
        let path = folder.join(LINK_FILE);
        let text =
            std::fs::read_to_string(&path).map_err(|source| Error::io(path.display(), source))?;
        let (spec, peer) = file::read(&text, name).map_err(|error| error.at(path.display()))?;
        let source = Source::Recorded(folder.to_owned());
        Ok(Self::of(name, keys, spec, &peer, source))
    }
}

/// The constants of a body that is outside of the process, for controllers: it does not move.
struct Still(BodySpec);

impl Body for Still {
    fn spec(&self) -> &BodySpec {
        &self.0
    }

    fn reset(&mut self, _seed: u64) {}

    fn observe(&self, observation: &mut [f32]) {
        observation.fill(0.0);
    }

    fn step(&mut self, _action: &[f32]) -> Step {
        Step::default()
    }
}

impl PlantSettings for RemoteSettings {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        let name = read_name(section)?;
        let keys = read_other_keys(section, Carrier::of(&name))?;
        // Before the body is waited for.
        section.check_known()?;
        match section.run_folder() {
            Some(folder) => Self::recorded(&name, keys, folder),
            None => Self::connect(&name, keys),
        }
    }

    /// The constants alone: what is outside of the process is stepped by the loop of a run, and by
    /// nothing else.
    fn make(&self, _start: Start) -> Result<Box<dyn Body>> {
        Ok(Box::new(Still(self.shared.spec.clone())))
    }

    fn plant(&self, _start: Start) -> Result<Box<dyn Body>> {
        let shared = &self.shared;
        let live = match &shared.source {
            Source::Recorded(folder) => {
                let replay = Replay::open(folder, shared.spec.clone())?;
                return Ok(Box::new(replay));
            }
            Source::Live(live) => &**live,
        };
        let spare = live.spare.lock();
        let spare = spare.unwrap_or_else(PoisonError::into_inner).take();
        let body = match spare {
            Some(body) => body,
            None => live.open(&shared.name)?,
        };
        if *body.spec() != shared.spec {
            return Err(Error::data(format!(
                "body {}: it has changed since the scenario was read",
                shared.name
            )));
        }
        Ok(Box::new(body))
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn has_default_task(&self) -> bool {
        false
    }

    fn text(&self) -> Option<&str> {
        Some(&self.shared.text)
    }

    fn text_file(&self) -> &'static str {
        LINK_FILE
    }

    fn versions(&self) -> Table {
        let pairs = [("peer".to_owned(), self.shared.peer.clone().into())];
        pairs.into_iter().collect()
    }
}

/// The name that `name`, `remote`, `listen`, `serial` or `ros2` states.
fn read_name(section: &mut Section<'_, '_>) -> Result<String> {
    for family in [&REMOTE, &LISTENER, &SERIAL, &ros2::FAMILY] {
        let key = Key::new(family.key, family.about).or("none");
        if let Some(value) = section.string(key)? {
            let value = value.value;
            return Ok(match value.starts_with(family.prefix) {
                true => value.to_owned(),
                false => format!("{}{value}", family.prefix),
            });
        }
    }
    Ok(section.required("name")?.value.to_owned())
}

/// Reads all keys, for the reference of scenarios.
fn read_keys(section: &mut Section<'_, '_>) -> Result<Table> {
    let keys = [&REMOTE, &LISTENER].map(|family| Key::new(family.key, family.about).or("none"));
    for key in keys {
        section.string(key)?;
    }
    read_other_keys(section, Carrier::Socket)
}

/// The same for a serial port.
fn read_serial_keys(section: &mut Section<'_, '_>) -> Result<Table> {
    section.string(Key::new(SERIAL.key, SERIAL.about).or("none"))?;
    read_other_keys(section, Carrier::Serial)
}

/// The same for topics of ROS 2.
fn read_ros2_keys(section: &mut Section<'_, '_>) -> Result<Table> {
    let family = &ros2::FAMILY;
    section.string(Key::new(family.key, family.about).or("none"))?;
    read_other_keys(section, Carrier::Ros2)
}

/// Reads the keys besides the address, as the scenario is written again with them.
fn read_other_keys(section: &mut Section<'_, '_>, carrier: Carrier) -> Result<Table> {
    let mut keys = Table::new();
    if carrier == Carrier::Ros2 {
        ros2::read_keys(section, &mut keys)?;
    }
    let mut put = |key: &str, value: Option<Value>| {
        value.into_iter().for_each(|value| {
            keys.insert(key.to_owned(), value);
        });
    };
    // What states something of itself is compared with the scenario; the others need all keys.
    let (absent, compared) = match carrier {
        Carrier::Socket => ("the body's", ", compared with the body's"),
        Carrier::Serial | Carrier::Ros2 => ("required", ""),
    };
    let about = format!("time between two actions{compared}");
    let period = Key::new("period", &about).unit("s").or(absent);
    put("period", section.positive(period)?.map(Value::from));
    let wait = Key::new(
        "wait",
        "how long the first connection may take, an answer under clock `\"sim\"`, and the first observation of an episode",
    )
    .unit("s")
    .or(WAIT_S);
    put(
        "wait",
        section.positive_up_to(wait, 86_400.0)?.map(Value::from),
    );
    let hold = Key::new(
        "hold",
        "how long the last action is held after the last observation, under clock `\"real\"`; then the body gets its safe action",
    )
    .unit("s")
    .or("min(3 periods, 0.1 s), at least 1.5 periods");
    put("hold", section.positive_up_to(hold, 10.0)?.map(Value::from));
    if carrier == Carrier::Serial {
        let baud = Key::new("baud", "bits per second").or(BAUD);
        let baud = section.whole(baud, 1..=MAX_BAUD)?;
        put("baud", baud.map(|baud| Value::from(baud as i64)));
        let checksum = Key::new(
            "checksum",
            "whether each line ends with `*HH`, the XOR of its bytes",
        )
        .or(false);
        put("checksum", section.flag(checksum)?.map(Value::from));
    } else {
        let token = Key::new(
            "token_file",
            "file with the token that the connecting side shows",
        )
        .or("the variable TECTUM_TOKEN, if it is set");
        let token = section.string(token)?.map(|path| path.value.into());
        put("token_file", token);
    }
    let about = format!("safe action{compared}");
    let safe = Key::new("safe_action", &about)
        .values("a list of numbers")
        .or(absent);
    put("safe_action", section.numbers(safe)?.map(Value::from));
    for kind in ["observation", "action"] {
        put(kind, read_channels(section, kind, carrier)?);
    }
    if carrier == Carrier::Socket {
        put("source", read_sources(section)?);
    }
    Ok(keys)
}

/// Reads `[[body.source]]`: each is written with its name, `ws://` or `listen:ws://`.
fn read_sources(section: &mut Section<'_, '_>) -> Result<Option<Value>> {
    let about = "Other processes with channels of the observation and no action, such as a camera; they follow the body's own.";
    let mut sources = Vec::new();
    for mut source in section.sections(Key::new("source", about))? {
        let mut table = Table::new();
        for family in [&REMOTE, &LISTENER] {
            let about = family.about.replace("body", "source");
            let key = Key::new(family.key, &about).or("none");
            let value = source.string(key)?.map(|value| value.value.to_owned());
            let value = value.map(|value| match value.starts_with(family.prefix) {
                true => value,
                false => format!("{}{value}", family.prefix),
            });
            if let Some(name) = value
                && table.insert("name".to_owned(), name.into()).is_some()
            {
                return Err(source.fault("one key states the source: \"listen\" is one too many"));
            }
        }
        let hold = Key::new(
            "hold",
            "how long the body continues without an observation of the source",
        )
        .unit("s")
        .or("as of the body");
        let hold = source.positive_up_to(hold, 10.0)?;
        table.extend(hold.map(|hold| ("hold".to_owned(), hold.into())));
        let token = Key::new(
            "token_file",
            "file with the token that the connecting side shows",
        )
        .or("the variable TECTUM_TOKEN, if it is set");
        let token = source.string(token)?.map(|path| path.value.into());
        table.extend(token.map(|token| ("token_file".to_owned(), token)));
        if !table.contains_key("name") {
            let known = Key::new(
                "name",
                "the source by its name in records: `ws://HOST:PORT` or `listen:ws://HOST:PORT`",
            );
            let name = source.required(known)?.value.to_owned();
            table.insert("name".to_owned(), name.into());
        }
        source.finish()?;
        sources.push(Value::from(table));
    }
    Ok(Some(sources)
        .filter(|sources| !sources.is_empty())
        .map(Value::from))
}

fn read_channels(
    section: &mut Section<'_, '_>,
    kind: &str,
    carrier: Carrier,
) -> Result<Option<Value>> {
    let (absent, compared) = match carrier {
        Carrier::Socket => ("not compared", ", compared with those of the body"),
        Carrier::Serial | Carrier::Ros2 => ("required", ""),
    };
    let about = format!("Channels of the {kind} in order{compared}.");
    let mut channels = Vec::new();
    for mut channel in section.sections(Key::new(kind, &about))? {
        let stated = StatedChannel::read(&mut channel, kind, [absent; 3])?;
        let table = Table::try_from(stated);
        let mut table = table.map_err(|error| channel.fault(error))?;
        if carrier == Carrier::Ros2 {
            ros2::read_channel(&mut channel, kind, &mut table)?;
        }
        channel.finish()?;
        channels.push(Value::from(table));
    }
    Ok(Some(channels)
        .filter(|channels| !channels.is_empty())
        .map(Value::from))
}

/// How a body is reached, from its name and the keys of a scenario.
fn link_settings(name: &str, keys: &Table) -> Result<LinkSettings> {
    let reach = if let Some(address) = name.strip_prefix(LISTEN) {
        Reach::Listen(Address::parse(address)?)
    } else if let Some(path) = name.strip_prefix(SERIAL_PORT) {
        let body = stated(keys).body(name, "a machine on a serial port")?;
        let baud = keys.get("baud").and_then(Value::as_integer);
        Reach::Serial(Box::new(SerialSettings {
            baud: baud.map_or(BAUD, |baud| baud as u32),
            checksum: keys.get("checksum").and_then(Value::as_bool) == Some(true),
            ..SerialSettings::new(path, body)
        }))
    } else if name.starts_with(ros2::PREFIX) {
        let body = stated(keys).body(name, "a topic of ROS 2")?;
        Reach::Ros2(Box::new(ros2::settings(name, keys, body)?))
    } else {
        Reach::Connect(Address::parse(name)?)
    };
    let number = |key: &str| keys.get(key).and_then(Value::as_float);
    let token = keys
        .get("token_file")
        .and_then(Value::as_str)
        .map(Path::new);
    Ok(LinkSettings {
        token: Token::find(token)?,
        wait: Duration::from_secs_f64(number("wait").unwrap_or(WAIT_S)),
        hold_s: number("hold"),
        stated: stated(keys),
        ..LinkSettings::new(reach)
    })
}

fn stated(keys: &Table) -> Stated {
    let channels = |kind: &str| {
        let channels = keys.get(kind)?.as_array()?;
        let channel = |channel: &Value| StatedChannel {
            name: channel
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned(),
            unit: channel
                .get("unit")
                .and_then(Value::as_str)
                .map(str::to_owned),
            low: channel.get("low").and_then(Value::as_float),
            high: channel.get("high").and_then(Value::as_float),
            wraps: channel.get("wraps").and_then(Value::as_bool),
            discrete: channel.get("discrete").and_then(Value::as_bool),
        };
        Some(channels.iter().map(channel).collect())
    };
    let safe = keys.get("safe_action").and_then(Value::as_array);
    Stated {
        period_s: keys.get("period").and_then(Value::as_float),
        observation: channels("observation"),
        action: channels("action"),
        safe_action: safe.map(|safe| safe.iter().filter_map(Value::as_float).collect()),
    }
}
