//! The keys of bodies that are nodes of ROS 2.

use tectum::Result;
use tectum_control::body::{BodySpec, Family};
use tectum_control::message::ElementType;
use tectum_control::scenario::{Key, Section};
use toml::{Table, Value};

use crate::Address;
use crate::ros2::{ARM, MAX_AGE_S, MAX_DOMAIN, NODE, Ros2Field, Ros2Settings};

/// How the names of these bodies begin.
pub(super) const PREFIX: &str = "ros2:";

pub(super) static FAMILY: Family = Family {
    prefix: PREFIX,
    key: "ros2",
    about: "router of zenoh that delivers the topics of a robot with ROS 2, `tcp/HOST:PORT`",
    descriptor: &super::DESCRIPTOR,
    read_keys: super::read_ros2_keys,
    example: EXAMPLE,
    heading: "A robot with ROS 2 has topics, of which the scenario states where each channel is; [robots.md](robots.md) explains it. It needs a build with the feature `ros2`:",
};

const EXAMPLE: &str = r#"[body]
ros2 = "tcp/127.0.0.1:7447"
mode = "client"
domain = 0
namespace = "/"
node = "tectum"
user = "robot"
token_file = "robot.token"
trusted_network = false
type_hashes = true
trigger = "/joint_states"
max_age = 0.5
clock = "/clock"
arm = "~/arm"
period = 0.02
wait = 5.0
hold = 0.06
safe_action = [0.0]

[[body.observation]]
name = "hip"
topic = "/joint_states"
type = "sensor_msgs/msg/JointState"
field = "position"
joint = "left_hip"
unit = "rad"
low = -3.2
high = 3.2

[[body.observation]]
name = "camera"
topic = "/camera/image"
type = "sensor_msgs/msg/Image"
field = "data"
shape = [48, 64, 3]
dtype = "uint8"
unit = ""
low = 0
high = 255

[[body.action]]
name = "torque"
topic = "/effort_controller/commands"
type = "std_msgs/msg/Float64MultiArray"
field = "data[0]"
unit = "N m"
low = -2.0
high = 2.0
"#;

const MODES: [(&str, bool); 2] = [("client", false), ("peer", true)];

/// Reads the keys of `[body]` that no other body has.
pub(super) fn read_keys(section: &mut Section<'_, '_>, keys: &mut Table) -> Result<()> {
    let mut put = |key: &str, value: Option<Value>| {
        value.into_iter().for_each(|value| {
            keys.insert(key.to_owned(), value);
        });
    };
    let mode = Key::new(
        "mode",
        "client of a router, or peer, which connects to other nodes of this machine too",
    )
    .or("\"client\"");
    let is_peer = section.choice(mode, &MODES)?;
    put(
        "mode",
        is_peer.map(|is_peer| MODES[usize::from(is_peer)].0.into()),
    );
    let domain = Key::new(
        "domain",
        "domain, the variable `ROS_DOMAIN_ID` of the robot",
    )
    .or(0);
    let domain = section.whole(domain, 0..=MAX_DOMAIN)?;
    put("domain", domain.map(|domain| Value::from(domain as i64)));
    for (name, about, default) in [
        ("namespace", "namespace of the node", "\"/\"".to_owned()),
        ("node", "name of the node", format!("\"{NODE}\"")),
        (
            "user",
            "user that the router asks for, whose password is a token; other machines need it",
            "none".to_owned(),
        ),
        (
            "trigger",
            "topic whose messages complete an observation",
            "the topic of the first channel".to_owned(),
        ),
        (
            "clock",
            "topic of simulated time, which periods follow under clock `\"sim\"`, and times in messages",
            "the time of this machine".to_owned(),
        ),
        (
            "arm",
            "topic of `std_msgs/msg/Bool` that arms the robot again after a stop",
            format!("\"{ARM}\""),
        ),
    ] {
        let value = section.string(Key::new(name, about).or(default))?;
        put(name, value.map(|value| value.value.into()));
    }
    let trusted = Key::new(
        "trusted_network",
        "whether a router on another machine need not ask for a user: every program that reaches it can command the robot",
    )
    .or(false);
    put("trusted_network", section.flag(trusted)?.map(Value::from));
    let hashes = Key::new(
        "type_hashes",
        "whether types have hashes; those of ROS 2 Humble do not",
    )
    .or(true);
    put("type_hashes", section.flag(hashes)?.map(Value::from));
    let max_age = Key::new(
        "max_age",
        "how old the value of each channel may be; there is no observation with an older one",
    )
    .unit("s")
    .or(MAX_AGE_S);
    put(
        "max_age",
        section.positive_up_to(max_age, 3600.0)?.map(Value::from),
    );
    Ok(())
}

/// Reads where a channel is: the keys of a channel that no other body has.
pub(super) fn read_channel(
    section: &mut Section<'_, '_>,
    kind: &str,
    keys: &mut Table,
) -> Result<()> {
    for (name, about) in [
        (
            "topic",
            "topic, `/joint_states`; without a slash it is in the namespace of the node",
        ),
        ("type", "type of its messages, `sensor_msgs/msg/JointState`"),
        (
            "field",
            "field of a message, `position`, `pose.pose.orientation.w` or `data[2]`",
        ),
    ] {
        let value = section.required(Key::new(name, about))?.value;
        keys.insert(name.to_owned(), value.into());
    }
    let joint = Key::new(
        "joint",
        "name of a joint: the number is the one with the place of its name in the message",
    )
    .or("none");
    if let Some(joint) = section.string(joint)? {
        keys.insert("joint".to_owned(), joint.value.into());
    }
    if kind == "action" {
        return Ok(());
    }
    let shape = Key::new("shape", "sizes of a channel that is an array").or("one number");
    if let Some(shape) = section.whole_list(shape, 1..=1 << 26)? {
        let sizes = shape.into_iter().map(|size| Value::from(size as i64));
        keys.insert("shape".to_owned(), Value::Array(sizes.collect()));
    }
    let names = ELEMENTS.map(|element| (element.name(), element));
    let element = Key::new("dtype", "type of the elements of an array").or("\"float32\"");
    if let Some(element) = section.choice(element, &names)? {
        keys.insert("dtype".to_owned(), element.name().into());
    }
    Ok(())
}

/// The types of elements that channels have.
const ELEMENTS: [ElementType; 4] = [
    ElementType::F32,
    ElementType::U8,
    ElementType::I8,
    ElementType::Bool,
];

/// The body with the shapes and elements of channels that are arrays.
fn with_arrays(mut body: BodySpec, keys: &Table) -> BodySpec {
    let channels = keys.get("observation").and_then(Value::as_array);
    for (own, channel) in body
        .observation
        .iter_mut()
        .zip(channels.into_iter().flatten())
    {
        let sizes = channel.get("shape").and_then(Value::as_array);
        let sizes = sizes.into_iter().flatten().filter_map(Value::as_integer);
        let name = channel.get("dtype").and_then(Value::as_str);
        let element = ELEMENTS
            .into_iter()
            .find(|element| Some(element.name()) == name);
        *own = own.clone().array(
            sizes.map(|size| size as usize).collect::<Vec<_>>(),
            element.unwrap_or(ElementType::F32),
        );
    }
    body
}

/// The node of a scenario, from the name of the body and the keys.
///
/// # Errors
/// `Invalid` for an address that is no endpoint of zenoh.
pub(super) fn settings(name: &str, keys: &Table, body: BodySpec) -> Result<Ros2Settings> {
    let address = name.strip_prefix(PREFIX).unwrap_or(name);
    let text = |key: &str| keys.get(key).and_then(Value::as_str).map(str::to_owned);
    let flag = |key: &str| keys.get(key).and_then(Value::as_bool);
    let fields = |kind: &str| {
        let channels = keys.get(kind).and_then(Value::as_array);
        let channels = channels.into_iter().flatten();
        let field = |channel: &Value| {
            let text = |key: &str| channel.get(key).and_then(Value::as_str).map(str::to_owned);
            Ros2Field {
                topic: text("topic").unwrap_or_default(),
                kind: text("type").unwrap_or_default(),
                field: text("field").unwrap_or_default(),
                joint: text("joint"),
            }
        };
        channels.map(field).collect()
    };
    let body = with_arrays(body, keys);
    body.check()?;
    let new = Ros2Settings::new(Address::parse_zenoh(address)?, body);
    let domain = keys.get("domain").and_then(Value::as_integer);
    Ok(Ros2Settings {
        is_peer: text("mode").as_deref() == Some(MODES[1].0),
        domain: domain.map_or(new.domain, |domain| domain as u32),
        namespace: text("namespace").unwrap_or(new.namespace),
        node: text("node").unwrap_or(new.node),
        user: text("user"),
        is_trusted_network: flag("trusted_network").unwrap_or(new.is_trusted_network),
        clock: text("clock"),
        arm: text("arm").unwrap_or(new.arm),
        trigger: text("trigger"),
        max_age_s: keys
            .get("max_age")
            .and_then(Value::as_float)
            .unwrap_or(new.max_age_s),
        has_type_hashes: flag("type_hashes").unwrap_or(new.has_type_hashes),
        observation: fields("observation"),
        action: fields("action"),
        ..Ros2Settings::new(new.address, new.body)
    })
}
