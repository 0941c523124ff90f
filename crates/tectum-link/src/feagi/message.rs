//! The documents of the control socket, in JSON.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tectum::{Error, Result};

use super::base64;
use super::container::{AgentId, Container, IdSize, JSON};

/// The version of FEAGI's interface.
const API_VERSION: u64 = 1;
/// The protocol that an agent connects with.
const PROTOCOL: &str = "Zmq";
/// The lengths of names, in bytes, as FEAGI limits them.
const MAX_NAME: usize = 64;
const MAX_MANUFACTURER: usize = 128;

/// What an agent requests.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// It is alive.
    HeartBeat,
    /// It registers, or ends its registration.
    AgentRegistration(RegistrationRequest),
    /// It describes its devices.
    AgentConfiguration(IgnoredAny),
    /// It asks for the state of FEAGI.
    HealthCheck(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RegistrationRequest {
    ClientRequestRegistration(Registration),
    ClientRequestDeregistration(Deregistration),
}

/// How an agent introduces itself.
#[derive(Deserialize)]
pub(crate) struct Registration {
    pub agent_descriptor: Descriptor,
    auth_token: AuthToken,
    requested_capabilities: Vec<String>,
    connection_protocol: String,
    api_version: ApiVersion,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Descriptor {
    pub manufacturer: String,
    pub agent_name: String,
    pub agent_version: u32,
}

#[derive(Deserialize)]
struct AuthToken {
    value: [u8; 32],
}

#[derive(Deserialize)]
struct ApiVersion {
    version: u64,
}

#[derive(Deserialize)]
pub(crate) struct Deregistration {
    pub reason: Option<String>,
}

/// What an agent is connected for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub sends_sensors: bool,
    pub receives_motors: bool,
}

impl Request {
    /// The request of a message.
    ///
    /// # Errors
    /// `Data` for a container that is not one JSON document, and for a document that is no request.
    pub fn of(container: &Container<'_>) -> Result<Self> {
        let [structure] = &container.structures[..] else {
            return Err(Error::data(format!(
                "control: {} structures; one JSON document is needed",
                container.structures.len()
            )));
        };
        if structure.kind != JSON {
            return Err(Error::data(format!(
                "control: structure of type {}; a JSON document, type {JSON}, is needed",
                structure.kind
            )));
        }
        serde_json::from_slice(structure.body())
            .map_err(|source| Error::data("control: it is no request").with_source(source))
    }
}

impl Registration {
    /// The token that the agent shows.
    pub fn token(&self) -> &[u8] {
        &self.auth_token.value
    }

    /// What the agent is connected for.
    ///
    /// # Errors
    /// `Data` naming the key that has an unknown or unsupported value.
    pub fn check(&self) -> Result<Capabilities> {
        let Descriptor {
            manufacturer,
            agent_name,
            agent_version,
        } = &self.agent_descriptor;
        let refused = |reason: String| Err(Error::data(format!("registration: {reason}")));
        for (key, name, max) in [
            ("agent_name", agent_name, MAX_NAME),
            ("manufacturer", manufacturer, MAX_MANUFACTURER),
        ] {
            if name.len() > max || !name.is_ascii() {
                return refused(format!("{key} is not at most {max} characters of ASCII"));
            }
        }
        if *agent_version == 0 {
            return refused("agent_version is 0; versions begin at 1".to_owned());
        }
        if self.api_version.version != API_VERSION {
            let version = self.api_version.version;
            return refused(format!("api_version is {version}; {API_VERSION} is needed"));
        }
        if self.connection_protocol != PROTOCOL {
            let protocol = &self.connection_protocol;
            return refused(format!(
                "connection_protocol is {protocol:?}; {PROTOCOL:?} is needed"
            ));
        }
        let mut capabilities = Capabilities {
            sends_sensors: false,
            receives_motors: false,
        };
        for capability in &self.requested_capabilities {
            match capability.as_str() {
                "send_sensor_data" => capabilities.sends_sensors = true,
                "receive_motor_data" => capabilities.receives_motors = true,
                other => {
                    return refused(format!(
                        "requested_capabilities has {other:?}; known: send_sensor_data, receive_motor_data"
                    ));
                }
            }
        }
        Ok(capabilities)
    }
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    HeartBeat,
    Registered {
        agent: AgentId,
        /// The addresses of the sockets, of each capability that was requested.
        sensors: Option<String>,
        motors: Option<String>,
    },
    InvalidRequest,
    InvalidToken,
    AlreadyRegistered,
    Deregistered,
    NotRegistered,
}

impl Reply {
    /// The document, in the form that goes with the size of ids.
    pub fn to_json(&self, size: IdSize) -> String {
        let registration =
            |reply: Value| json!({"agent_registration": {"server_responds_registration": reply}});
        let deregistration =
            |reply: &str| json!({"agent_registration": {"server_responds_deregistration": reply}});
        let document = match self {
            Self::HeartBeat => json!("heart_beat"),
            Self::Registered {
                agent,
                sensors,
                motors,
            } => {
                let id = match size {
                    IdSize::Long => json!(base64::encode(agent.bytes())),
                    IdSize::Short => json!({"bytes": agent.bytes()}),
                };
                let urls = [
                    ("send_sensor_data", sensors),
                    ("receive_motor_data", motors),
                ];
                let urls = urls.into_iter().filter_map(|(capability, url)| {
                    let url = url.as_ref()?;
                    Some((capability.to_owned(), json!({PROTOCOL: {"url": url}})))
                });
                registration(json!({"success": [id, Value::Object(urls.collect())]}))
            }
            Self::InvalidRequest => registration(json!("failed_invalid_request")),
            Self::InvalidToken => registration(json!("failed_invalid_auth")),
            Self::AlreadyRegistered => registration(json!("already_registered")),
            Self::Deregistered => deregistration("success"),
            Self::NotRegistered => deregistration("not_registered"),
        };
        document.to_string()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::feagi::container::{Structure, write_json};

    /// The registration of the released client, captured; its token is 0 to 31.
    pub(crate) const REGISTRATION: &str = r#"{"agent_registration":{"client_request_registration":{"agent_descriptor":{"agent_name":"robot","agent_version":1,"manufacturer":"maker"},"api_version":{"version":1},"auth_token":{"value":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31]},"connection_protocol":"Zmq","requested_capabilities":["send_sensor_data","receive_motor_data"]}}}"#;

    fn request(text: &str) -> Result<Request> {
        let bytes = write_json(text);
        let structure = Structure {
            kind: JSON,
            bytes: &bytes,
        };
        Request::of(&Container {
            counter: 0,
            agent: AgentId::blank(IdSize::Long),
            structures: vec![structure],
        })
    }

    /// Whether a request is no registration, or one that is supported.
    pub(crate) fn is_supported(request: &Request) -> bool {
        match request {
            Request::AgentRegistration(RegistrationRequest::ClientRequestRegistration(own)) => {
                own.check().is_ok() && own.token().len() == 32
            }
            _ => true,
        }
    }

    pub(crate) fn registration(text: &str) -> Registration {
        match request(text) {
            Ok(Request::AgentRegistration(RegistrationRequest::ClientRequestRegistration(
                registration,
            ))) => registration,
            _ => panic!("no registration: {text}"),
        }
    }

    #[test]
    fn the_requests_of_the_client_are_read() {
        let own = registration(REGISTRATION);
        assert_eq!(own.agent_descriptor.agent_name, "robot");
        assert_eq!(own.token(), (0..32).collect::<Vec<u8>>());
        let both = Capabilities {
            sends_sensors: true,
            receives_motors: true,
        };
        assert_eq!(own.check().ok(), Some(both));
        assert!(matches!(request("\"heart_beat\""), Ok(Request::HeartBeat)));
        let end = r#"{"agent_registration":{"client_request_deregistration":{"reason":"python-sdk disconnect"}}}"#;
        assert!(matches!(
            request(end),
            Ok(Request::AgentRegistration(RegistrationRequest::ClientRequestDeregistration(end)))
                if end.reason.as_deref() == Some("python-sdk disconnect")
        ));
        let devices = r#"{"agent_configuration":{"AgentConfigurationDetails":{"feedbacks":{"registered_feedbacks":[]}}}}"#;
        assert!(matches!(
            request(devices),
            Ok(Request::AgentConfiguration(_))
        ));
        for wrong in ["", "{}", "\"bye\"", "{\"agent_registration\":{}}", "[1]"] {
            let error = request(wrong).err().expect(wrong).to_string();
            assert!(error.starts_with("control: it is no request"), "{error}");
        }
    }

    #[test]
    fn a_registration_that_is_not_supported_names_its_key() {
        for (from, to, reason) in [
            (
                "\"Zmq\"",
                "\"WebSocket\"",
                "connection_protocol is \"WebSocket\"; \"Zmq\" is needed",
            ),
            (
                "{\"version\":1}",
                "{\"version\":2}",
                "api_version is 2; 1 is needed",
            ),
            (
                "\"agent_version\":1",
                "\"agent_version\":0",
                "agent_version is 0",
            ),
            (
                "robot",
                "r\u{f6}bot",
                "agent_name is not at most 64 characters of ASCII",
            ),
            (
                "receive_motor_data",
                "receive_neuron_visualizations",
                "requested_capabilities has \"receive_neuron_visualizations\"; known: send_sensor_data",
            ),
        ] {
            let registration = registration(&REGISTRATION.replace(from, to));
            let error = registration.check().expect_err(reason).to_string();
            assert!(
                error.starts_with("registration: ") && error.contains(reason),
                "{error}"
            );
        }
        let short = REGISTRATION.replace(",30,31]", ",30]");
        assert!(request(&short).is_err(), "a token has 32 bytes");
    }

    #[test]
    fn an_id_is_base64_or_its_bytes() {
        let reply = |size: IdSize| {
            let registered = Reply::Registered {
                agent: AgentId::new(size, [1; 48]),
                sensors: Some("tcp://127.0.0.1:5558".to_owned()),
                motors: None,
            };
            registered.to_json(size)
        };
        let rest = r#",{"send_sensor_data":{"Zmq":{"url":"tcp://127.0.0.1:5558"}}}]}}}"#;
        let begin = r#"{"agent_registration":{"server_responds_registration":{"success":["#;
        let id = "AQEB".repeat(16);
        assert_eq!(reply(IdSize::Long), format!("{begin}\"{id}\"{rest}"));
        assert_eq!(
            reply(IdSize::Short),
            format!("{begin}{{\"bytes\":[1,1,1,1,1,1,1,1]}}{rest}")
        );
        assert_eq!(
            Reply::NotRegistered.to_json(IdSize::Long),
            r#"{"agent_registration":{"server_responds_deregistration":"not_registered"}}"#
        );
    }
}
