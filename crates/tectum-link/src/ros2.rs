//! Bodies that are nodes of ROS 2, over zenoh as rmw_zenoh uses it, without ROS.
//!
//! ```text
//!  topics of the observation ──latest message──▶ channels ──leading topic──▶ observation
//!  action ──────────────────▶ messages ────────────────────▶ topics of the action
//!  ~/arm ───────────────────▶ arm: the operator allows actions again after a stop
//! ```
//!
//! Topics state neither ranges nor a period, so that the scenario states both. An observation is
//! complete when each channel has a value, and is sent when the leading topic delivers. Everything
//! else is as for a body behind a socket: the keeper of the connection, the mailbox and the
//! supervisor are the same.

#[cfg(feature = "ros2")]
mod graph;
#[cfg(feature = "ros2")]
mod mapping;
#[cfg(feature = "ros2")]
pub(crate) mod node;
#[cfg(feature = "ros2")]
mod session;
#[cfg(feature = "ros2")]
mod steps;

use tectum::Result;
use tectum_control::body::BodySpec;

use crate::{Address, Token};

/// Where the numbers of a channel are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ros2Field {
    /// The topic, `/joint_states`; a name without a slash is in the namespace of the node.
    pub topic: String,
    /// The type of its messages, `sensor_msgs/msg/JointState`.
    pub kind: String,
    /// The path of the field: `position`, `linear_acceleration.x`, `data[2]`.
    pub field: String,
    /// The name of a joint: the number is the element of the field that has its place in the list of
    /// names.
    pub joint: Option<String>,
}

/// A node, and what the robot is.
#[derive(Debug, Clone, PartialEq)]
pub struct Ros2Settings {
    /// The router, or a peer.
    pub address: Address,
    /// Whether the node is a peer, which connects to other nodes of this machine too, and not a
    /// client of a router.
    pub is_peer: bool,
    /// The domain, `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// The namespace of the node: `/`, or `/robot`.
    pub namespace: String,
    /// The name of the node.
    pub node: String,
    /// The user that the router asks for; the token is the password.
    pub user: Option<String>,
    /// Whether a router on another machine need not ask for a user: every program that reaches it can
    /// then observe and command the robot.
    pub is_trusted_network: bool,
    /// The topic of simulated time.
    pub clock: Option<String>,
    /// The topic that arms the robot again after a stop.
    pub arm: String,
    /// The topic whose messages complete an observation; none for that of the first channel.
    pub trigger: Option<String>,
    /// How old the value of a channel may be, in seconds.
    pub max_age_s: f64,
    /// Whether types have hashes. Those of ROS 2 Humble do not.
    pub has_type_hashes: bool,
    /// Where the channels of the observation are, in the order of the body.
    pub observation: Vec<Ros2Field>,
    /// Where the channels of the action are, in the order of the body.
    pub action: Vec<Ros2Field>,
    /// Channels, period and safe action.
    pub body: BodySpec,
}

impl Ros2Settings {
    /// A client of the router, in domain 0.
    pub fn new(address: Address, body: BodySpec) -> Self {
        Self {
            address,
            is_peer: false,
            domain: 0,
            namespace: "/".to_owned(),
            node: NODE.to_owned(),
            user: None,
            is_trusted_network: false,
            clock: None,
            arm: ARM.to_owned(),
            trigger: None,
            max_age_s: MAX_AGE_S,
            has_type_hashes: true,
            observation: Vec::new(),
            action: Vec::new(),
            body,
        }
    }

    /// Refuses what no node can be made of.
    ///
    /// # Errors
    /// `Unsupported` in a build without the feature `ros2`; `Invalid` for an address of another
    /// machine without a user or [`Ros2Settings::is_trusted_network`], and naming a channel, a topic
    /// or a field that does not exist.
    pub(crate) fn check(&self, token: Option<&Token>) -> Result<()> {
        #[cfg(not(feature = "ros2"))]
        {
            let _ = token;
            Err(tectum::Error::unsupported(
                "ROS 2: this build leaves it out: the feature \"ros2\" is off",
            ))
        }
        #[cfg(feature = "ros2")]
        {
            self.check_access(token)?;
            if self.is_peer && !self.address.is_loopback() {
                return Err(tectum::Error::invalid(format!(
                    "address {}: a peer connects to nodes of this machine only; a client needs a router there",
                    self.address
                )));
            }
            mapping::Mapping::new(self).map(drop)
        }
    }
}

/// The name of the node by default.
pub(crate) const NODE: &str = "tectum";
/// The topic that arms the robot, by default.
pub(crate) const ARM: &str = "~/arm";
/// How old the value of a channel may be by default, in seconds.
pub(crate) const MAX_AGE_S: f64 = 0.5;
/// The highest domain: DDS has no port for one above.
pub(crate) const MAX_DOMAIN: u64 = 232;

#[cfg(feature = "ros2")]
impl Ros2Settings {
    /// Other machines need a user, as other bodies need a token, or the scenario names the exposure.
    fn check_access(&self, token: Option<&Token>) -> Result<()> {
        let address = &self.address;
        if self.user.is_some() && token.is_none() {
            return Err(tectum::Error::invalid(
                "user: its password is a token: the variable TECTUM_TOKEN or a file",
            ));
        }
        if address.is_loopback() || self.user.is_some() || self.is_trusted_network {
            return Ok(());
        }
        Err(tectum::Error::invalid(format!(
            "address {address}: it is not on this machine, and needs a user whose password is a token, or trusted_network = true: every program that reaches the router can then command the robot"
        )))
    }

    /// What the session publishes and subscribes to.
    fn session_plan(
        &self,
        mapping: &mapping::Mapping,
        token: Option<&Token>,
    ) -> session::SessionPlan {
        let user = self.user.clone();
        let credentials = user.zip(token.map(|token| token.secret().to_owned()));
        session::SessionPlan {
            endpoint: self.address.to_string(),
            is_peer: self.is_peer,
            credentials,
            domain: self.domain,
            namespace: self.namespace.clone(),
            node: self.node.clone(),
            subscribed: mapping.subscribed(),
            published: mapping.published(),
        }
    }
}
