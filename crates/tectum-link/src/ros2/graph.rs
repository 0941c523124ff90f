//! The names of ROS 2 on zenoh: key expressions of topics, liveliness tokens of a node with its
//! publishers and subscribers, and the attachment of a message, as rmw_zenoh defines them.
//!
//! ```text
//!  0/joint_states/sensor_msgs::msg::dds_::JointState_/RIHS01_…           data of a topic
//!  @ros2_lv/0/ZID/0/0/NN/%/%/tectum                                      a node
//!  @ros2_lv/0/ZID/0/1/MS/%/%/tectum/%joint_states/TYPE/HASH/2::,5:,:,:,, its subscriber
//! ```

use twox_hash::XxHash3_128;

/// The first part of all tokens.
const TOKENS: &str = "@ros2_lv";
/// What replaces a type hash in ROS 2 Humble, whose types have none.
pub(crate) const NO_HASH: &str = "TypeHashNotSupported";
/// The number of the node among the entities of its session.
const NODE: usize = 0;

/// A topic with its type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Topic {
    /// Its name from the root: `/joint_states`.
    pub name: String,
    /// Its type, as scenarios and ROS write it: `sensor_msgs/msg/JointState`.
    pub kind: String,
    /// `RIHS01_…`, or [`NO_HASH`].
    pub hash: String,
}

impl Topic {
    /// The key of its messages in a domain.
    pub fn key(&self, domain: u32) -> String {
        let type_name = dds_name(&self.kind);
        format!("{domain}{}/{type_name}/{}", self.name, self.hash)
    }

    /// The key expression of its messages with any type and any hash.
    pub fn any_key(&self, domain: u32) -> String {
        format!("{domain}{}/*/*", self.name)
    }

    /// Whether a type and a hash, as keys and tokens have them, are its own.
    pub fn has_type(&self, type_name: &str, hash: &str) -> bool {
        dds_name(&self.kind) == type_name && self.hash == hash
    }
}

/// The type and the hash at the end of a key.
pub(crate) fn type_of_key(key: &str) -> Option<(&str, &str)> {
    let (rest, hash) = key.rsplit_once('/')?;
    let (_, type_name) = rest.rsplit_once('/')?;
    Some((type_name, hash))
}

/// The name of a type in keys: `sensor_msgs::msg::dds_::JointState_`.
fn dds_name(kind: &str) -> String {
    match kind.rsplit_once('/') {
        Some((package, name)) => format!("{}::dds_::{name}_", package.replace('/', "::")),
        None => kind.to_owned(),
    }
}

/// The name of a type as ROS writes it, from that in keys.
pub(crate) fn ros_name(type_name: &str) -> String {
    type_name
        .trim_end_matches('_')
        .replace("::dds_::", "::")
        .replace("::", "/")
}

/// How a name is written within a token.
fn mangled(name: &str) -> String {
    name.replace('/', "%")
}

/// The quality of service that a token states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Qos {
    /// Best effort, the last 5 messages.
    Sensor,
    /// Reliable, the last 10 messages.
    Command,
}

impl Qos {
    /// Reliability, durability, history and depth, deadline, lifespan, liveliness; what rmw_zenoh
    /// has by default is empty.
    fn text(self) -> &'static str {
        match self {
            Self::Sensor => "2::,5:,:,:,,",
            Self::Command => "::,10:,:,:,,",
        }
    }
}

/// What a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Publisher,
    Subscriber,
}

impl Endpoint {
    fn code(self) -> &'static str {
        match self {
            Self::Publisher => "MP",
            Self::Subscriber => "MS",
        }
    }
}

/// A node in a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub domain: u32,
    /// The identifier of its session.
    pub zid: String,
    /// `/`, or `/robot`.
    pub namespace: String,
    pub name: String,
}

impl Node {
    /// The token of the node.
    pub fn token(&self) -> String {
        self.token_of(NODE, "NN")
    }

    /// The token of a publisher or a subscriber; `id` counts them from 1.
    pub fn endpoint_token(&self, id: usize, endpoint: Endpoint, topic: &Topic, qos: Qos) -> String {
        format!(
            "{}/{}/{}/{}/{}",
            self.token_of(id, endpoint.code()),
            mangled(&topic.name),
            dds_name(&topic.kind),
            topic.hash,
            qos.text()
        )
    }

    /// Domain, session, node and entity, its kind, enclave, namespace and node name.
    fn token_of(&self, id: usize, code: &str) -> String {
        let Self {
            domain,
            zid,
            namespace,
            name,
        } = self;
        let namespace = mangled(namespace);
        format!("{TOKENS}/{domain}/{zid}/{NODE}/{id}/{code}/%/{namespace}/{name}")
    }
}

/// The key expression of all tokens in a domain.
pub(crate) fn all_tokens(domain: u32) -> String {
    format!("{TOKENS}/{domain}/**")
}

/// The name of a topic from the root, as a node resolves it.
pub(crate) fn resolved(name: &str, namespace: &str, node: &str) -> String {
    let namespace = namespace.trim_end_matches('/');
    match name.strip_prefix("~/") {
        Some(own) => format!("{namespace}/{node}/{own}"),
        None if name.starts_with('/') => name.to_owned(),
        None => format!("{namespace}/{name}"),
    }
}

/// What is wrong with a name of a topic, a namespace or a node; `is_path` allows slashes.
pub(crate) fn name_fault(name: &str, is_path: bool) -> Option<&'static str> {
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let path = name.strip_prefix("~/").or_else(|| name.strip_prefix('/'));
    let is_valid = match is_path {
        true => path.unwrap_or(name).split('/').all(is_word),
        false => is_word(name),
    };
    (!is_valid).then_some("needs letters, digits and underscores, without a digit at the beginning")
}

/// A publisher or a subscriber of any node, read from its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announced {
    pub zid: String,
    pub endpoint: Endpoint,
    /// Namespace and name of its node: `/robot/teleop`.
    pub node: String,
    pub topic: String,
    /// The type as keys have it.
    pub type_name: String,
    pub hash: String,
}

impl Announced {
    /// Reads a token; none for one of a node, a service or anything else.
    pub fn parse(token: &str) -> Option<Self> {
        let parts: Vec<&str> = token.split('/').collect();
        let &[
            TOKENS,
            _,
            zid,
            _,
            _,
            code,
            _,
            namespace,
            node,
            topic,
            type_name,
            hash,
            ..,
        ] = &parts[..]
        else {
            return None;
        };
        let kinds = [Endpoint::Publisher, Endpoint::Subscriber];
        let endpoint = kinds.into_iter().find(|kind| kind.code() == code)?;
        let path = |name: &str| name.replace('%', "/");
        let namespace = path(namespace);
        Some(Self {
            zid: zid.to_owned(),
            endpoint,
            node: format!("{}/{node}", namespace.trim_end_matches('/')),
            topic: path(topic),
            type_name: type_name.to_owned(),
            hash: hash.to_owned(),
        })
    }
}

/// The bytes in front of the identifier in an attachment: its length.
const GID_BYTES: u8 = 16;

/// The identifier of a publisher: a hash of its token.
pub(crate) fn gid(token: &str) -> [u8; GID_BYTES as usize] {
    XxHash3_128::oneshot(token.as_bytes()).to_le_bytes()
}

/// What each message has besides its payload: its number from 1, the time of its sending and the
/// identifier of its publisher.
pub(crate) fn attachment(sequence: i64, time_ns: i64, gid: &[u8; GID_BYTES as usize]) -> Vec<u8> {
    let head = [sequence.to_le_bytes(), time_ns.to_le_bytes()].concat();
    [&head[..], &[GID_BYTES], gid].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joints() -> Topic {
        Topic {
            name: "/joint_states".into(),
            kind: "sensor_msgs/msg/JointState".into(),
            hash: "RIHS01_a1".into(),
        }
    }

    fn node(namespace: &str) -> Node {
        Node {
            domain: 7,
            zid: "ab12".into(),
            namespace: namespace.into(),
            name: "tectum".into(),
        }
    }

    #[test]
    fn keys_and_tokens_are_those_of_rmw_zenoh() {
        let topic = joints();
        let key = topic.key(0);
        assert_eq!(
            key,
            "0/joint_states/sensor_msgs::msg::dds_::JointState_/RIHS01_a1"
        );
        assert_eq!(topic.any_key(0), "0/joint_states/*/*");
        let (type_name, hash) = type_of_key(&key).expect("both");
        assert!(topic.has_type(type_name, hash) && !topic.has_type(type_name, NO_HASH));
        assert_eq!(ros_name(type_name), topic.kind);
        assert_eq!(node("/").token(), "@ros2_lv/7/ab12/0/0/NN/%/%/tectum");
        assert_eq!(
            node("/robot").endpoint_token(3, Endpoint::Subscriber, &topic, Qos::Sensor),
            "@ros2_lv/7/ab12/0/3/MS/%/%robot/tectum/%joint_states/sensor_msgs::msg::dds_::JointState_/RIHS01_a1/2::,5:,:,:,,"
        );
        assert_eq!(all_tokens(7), "@ros2_lv/7/**");
    }

    #[test]
    fn tokens_are_read_as_they_are_written() {
        let topic = joints();
        for (namespace, name) in [("/", "/tectum"), ("/robot/left", "/robot/left/tectum")] {
            let token =
                node(namespace).endpoint_token(2, Endpoint::Publisher, &topic, Qos::Command);
            assert!(token.ends_with("/::,10:,:,:,,"), "{token}");
            let announced = Announced {
                zid: "ab12".into(),
                endpoint: Endpoint::Publisher,
                node: name.into(),
                topic: topic.name.clone(),
                type_name: "sensor_msgs::msg::dds_::JointState_".into(),
                hash: topic.hash.clone(),
            };
            assert_eq!(Announced::parse(&token), Some(announced));
        }
        let service =
            "@ros2_lv/0/a/0/1/SS/%/%/n/%reset/std_srvs::srv::dds_::Empty_/RIHS01_a/::,10:,:,:,,";
        for token in [&*node("/").token(), service, "", "@ros2_lv/0/a", "a/b/c"] {
            assert_eq!(Announced::parse(token), None, "{token}");
        }
    }

    #[test]
    fn names_are_resolved_as_a_node_does_it() {
        for (name, namespace, path) in [
            ("joint_states", "/", "/joint_states"),
            ("joint_states", "/robot", "/robot/joint_states"),
            ("/cmd_vel", "/robot", "/cmd_vel"),
            ("~/arm", "/robot", "/robot/tectum/arm"),
            ("~/arm", "/", "/tectum/arm"),
        ] {
            assert_eq!(resolved(name, namespace, "tectum"), path);
        }
        for name in ["a", "/a/b_2", "~/arm", "_a"] {
            assert_eq!(name_fault(name, true), None, "{name}");
        }
        for name in ["", "/", "a//b", "a/*", "/2a", "a/", "a b", "a%", "~arm"] {
            assert!(name_fault(name, true).is_some(), "{name}");
        }
        assert!(name_fault("a/b", false).is_some());
    }

    #[test]
    fn an_attachment_has_number_time_and_identifier() {
        let gid = gid("");
        // The published hash of no bytes with XXH3, 128 bits: 99aa06d3014798d8 6001c324468d497f.
        assert_eq!(gid[..8], 0x6001_c324_468d_497f_u64.to_le_bytes());
        let bytes = attachment(1, 0x0102, &gid);
        assert_eq!(bytes.len(), 33);
        assert_eq!(bytes[..9], [1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!((bytes[9], bytes[16]), (1, 16));
        assert_eq!(bytes[17..], gid);
    }
}
