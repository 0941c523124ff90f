//! An agent of FEAGI, over the sockets of the crate `zeromq`, with a codec of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tectum::Device;
use tectum_link::Address;
use tectum_link::feagi::{ServedGenome, Server, ServerSettings};
use tectum_spiking::genome::{Genome, GenomeOptions};
use tectum_spiking::{ConnectOptions, ConnectedNetwork, connect};
use tokio::runtime::Runtime;
use zeromq::{
    DealerSocket, PushSocket, Socket as _, SocketRecv as _, SocketSend as _, SubSocket, ZmqMessage,
};

/// A voxel and its activation.
pub type Voxel = ([u32; 3], f32);

/// A motor frame: the burst, and the structure of voxels.
pub type MotorFrame = (u16, Vec<u8>);

/// An eye of 4 × 1 × 3 voxels that moves an arm of the same size, a ring of neurons that passes its
/// activity on along x, with an output of its own, and a beat of the power area.
pub fn genome() -> Genome {
    let area = |name: &str, group: &str, rest: Value| {
        let mut area = json!({
            "cortical_name": name, "group_id": group, "block_boundaries": [4, 1, 3],
            "firing_threshold": 1.0, "mp_charge_accumulation": false,
        });
        area.as_object_mut()
            .expect("an object")
            .extend(rest.as_object().expect("an object").clone());
        area
    };
    let copy = json!([["block_to_block", [1, 1, 1], 2, false]]);
    let one = json!([1, 1, 1]);
    let document = json!({
        "version": "2.1",
        "genome_title": "agents",
        "blueprint": {
            "_power": area("power", "CORE", json!({
                "block_boundaries": one, "cortical_mapping_dst": {"beat__": copy},
            })),
            "iseen_": area("eye", "IPU", json!({"cortical_mapping_dst": {"omove_": copy, "ring__": copy}})),
            "ring__": area("ring", "CUSTOM", json!({
                "cortical_mapping_dst": {"ring__": [["next", [1, 1, 1], 2, false]], "oecho_": copy},
            })),
            "beat__": area("beat", "CUSTOM", json!({
                "block_boundaries": one, "firing_threshold": 13.0, "mp_charge_accumulation": true,
                "cortical_mapping_dst": {"obeat_": copy},
            })),
            "omove_": area("arm", "OPU", json!({})),
            "oecho_": area("echo", "OPU", json!({})),
            "obeat_": area("pulse", "OPU", json!({"block_boundaries": one})),
        },
        "neuron_morphologies": {
            "block_to_block": {"type": "vectors", "parameters": {"vectors": [[0, 0, 0]]}},
            "next": {"type": "vectors", "parameters": {"vectors": [[1, 0, 0]]}},
        },
        "physiology": {"simulation_timestep": 0.02},
    });
    Genome::parse(&document.to_string(), &GenomeOptions::default()).expect("valid")
}

/// The network of a genome.
pub fn network(genome: &Genome) -> ConnectedNetwork {
    let options = ConnectOptions::default();
    connect(genome, options, &mut tectum::WorkProgress::ignore).expect("valid")
}

/// Serves a genome at free ports of this machine.
pub fn serve(genome: &Genome, change: impl FnOnce(&mut ServerSettings)) -> Server {
    let connected = network(genome);
    let cpu = Device::open("cpu").expect("always");
    let inputs = connected.constant_inputs;
    let served = ServedGenome::new(genome, Arc::new(connected.network), inputs, &[cpu]);
    let mut settings = ServerSettings::new(50.0).expect("valid");
    for address in [
        &mut settings.control,
        &mut settings.sensors,
        &mut settings.motors,
    ] {
        *address = Address::parse_tcp("tcp://127.0.0.1:0").expect("valid");
    }
    change(&mut settings);
    Server::start(served.expect("runs"), &settings).expect("free ports")
}

/// A structure of voxels of one area.
pub fn voxels(id: &[u8; 8], voxels: &[Voxel]) -> Vec<u8> {
    let mut bytes = vec![11, 1, 1, 0];
    bytes.extend(id);
    bytes.extend(20u32.to_le_bytes());
    bytes.extend((16 * voxels.len() as u32).to_le_bytes());
    for axis in 0..3 {
        voxels
            .iter()
            .for_each(|(at, _)| bytes.extend(at[axis].to_le_bytes()));
    }
    voxels
        .iter()
        .for_each(|(_, p)| bytes.extend(p.to_le_bytes()));
    bytes
}

/// The voxels of a structure, by the area's characters.
pub fn fired(structure: &[u8]) -> BTreeMap<String, Vec<[u32; 3]>> {
    let word = |at: usize| u32::from_le_bytes(structure[at..at + 4].try_into().expect("four"));
    assert_eq!(structure[..2], [11, 1]);
    let count = usize::from(structure[2]) + 256 * usize::from(structure[3]);
    (0..count)
        .map(|place| {
            let head = 4 + 16 * place;
            let name = String::from_utf8_lossy(&structure[head..head + 8]).into_owned();
            let (begin, size) = (word(head + 8) as usize, word(head + 12) as usize);
            let voxels = size / 16;
            let voxel = |v: usize| [0, 1, 2].map(|axis| word(begin + 4 * (axis * voxels + v)));
            (name, (0..voxels).map(voxel).collect())
        })
        .collect()
}

/// A container of one structure.
pub fn container(counter: u16, id: &[u8], structure: &[u8]) -> Vec<u8> {
    let [low, high] = counter.to_le_bytes();
    let length = (structure.len() as u32).to_le_bytes();
    [&[4, low, high, 1], id, &length, structure].concat()
}

/// An agent and its connections.
pub struct Agent {
    runtime: Runtime,
    control: DealerSocket,
    /// What its messages carry: zeros before the registration.
    pub id: Vec<u8>,
    sensors: Option<PushSocket>,
    motors: Option<SubSocket>,
}

impl Agent {
    /// Connects to the control socket, with ids of a size.
    pub fn connect(server: &Server, id_bytes: usize) -> Self {
        // Frames are sent while the test does something else.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let control = runtime.block_on(async {
            let mut control = DealerSocket::new();
            let address = server.control().to_string();
            control.connect(&address).await.expect("it listens");
            control
        });
        Self {
            runtime,
            control,
            id: vec![0; id_bytes],
            sensors: None,
            motors: None,
        }
    }

    /// An agent that is registered and has subscribed.
    pub fn registered(server: &Server, id_bytes: usize, name: &str) -> Self {
        let mut agent = Self::connect(server, id_bytes);
        let reply = agent.register(name, &[7; 32]);
        assert!(reply["success"].is_array(), "{reply}");
        agent
    }

    pub fn send(&mut self, document: &Value) {
        let structure = [&[1, 1], document.to_string().as_bytes()].concat();
        self.send_bytes(container(0, &self.id, &structure));
    }

    pub fn send_bytes(&mut self, content: Vec<u8>) {
        let mut message = ZmqMessage::from(Vec::new());
        message.push_back(content.into());
        self.runtime
            .block_on(self.control.send(message))
            .expect("connected");
    }

    /// The next reply.
    pub fn reply(&mut self) -> Value {
        let message = self
            .runtime
            .block_on(self.control.recv())
            .expect("connected");
        let frames = message.into_vec();
        assert_eq!((frames.len(), frames[0].len()), (2, 0));
        let content = &frames[1][..];
        let begin = 4 + self.id.len();
        assert_eq!(content[..4], [4, 0, 0, 1]);
        assert_eq!(content[begin + 4..begin + 6], [1, 1]);
        serde_json::from_slice(&content[begin + 6..]).expect("JSON")
    }

    pub fn ask(&mut self, document: &Value) -> Value {
        self.send(document);
        self.reply()
    }

    /// Registers, and opens the connections of the reply, which is returned.
    pub fn register(&mut self, name: &str, token: &[u8; 32]) -> Value {
        let request = json!({"agent_registration": {"client_request_registration": {
            "agent_descriptor": {"agent_name": name, "agent_version": 1, "manufacturer": "tests"},
            "api_version": {"version": 1},
            "auth_token": {"value": token},
            "connection_protocol": "Zmq",
            "requested_capabilities": ["send_sensor_data", "receive_motor_data"],
        }}});
        let reply = self.ask(&request);
        let reply = reply["agent_registration"]["server_responds_registration"].clone();
        let success = &reply["success"];
        if success.is_array() {
            self.id = id_of(&success[0]);
            let url = |capability: &str| success[1][capability]["Zmq"]["url"].clone();
            let [sensors, motors] = ["send_sensor_data", "receive_motor_data"].map(url);
            self.open(
                sensors.as_str().expect("a URL"),
                motors.as_str().expect("a URL"),
            );
        }
        reply
    }

    /// Opens the connections for sensors and motors.
    pub fn open(&mut self, sensors: &str, motors: &str) {
        let (push, sub) = self.runtime.block_on(async {
            let (mut push, mut sub) = (PushSocket::new(), SubSocket::new());
            push.connect(sensors).await.expect("it listens");
            sub.connect(motors).await.expect("it listens");
            sub.subscribe("").await.expect("connected");
            (push, sub)
        });
        (self.sensors, self.motors) = (Some(push), Some(sub));
    }

    pub fn deregister(&mut self) -> Value {
        let request =
            json!({"agent_registration": {"client_request_deregistration": {"reason": "tests"}}});
        self.ask(&request)["agent_registration"]["server_responds_deregistration"].clone()
    }

    /// Sends a sensor frame; false if the connection has ended.
    pub fn sense(&mut self, counter: u16, structure: &[u8]) -> bool {
        let content = container(counter, &self.id, structure);
        self.sense_bytes(content)
    }

    pub fn sense_bytes(&mut self, content: Vec<u8>) -> bool {
        let sensors = self.sensors.as_mut().expect("registered");
        self.runtime.block_on(sensors.send(content.into())).is_ok()
    }

    /// The next motor frame.
    pub fn motors(&mut self) -> MotorFrame {
        let motors = self.motors.as_mut().expect("registered");
        let message = self.runtime.block_on(motors.recv()).expect("connected");
        let content = message.into_vec().remove(0);
        let begin = 4 + self.id.len();
        assert_eq!(content[4..begin], vec![0; self.id.len()]);
        let length = content.len() - begin - 4;
        assert_eq!((content[0], content[3]), (4, 1));
        assert_eq!(content[begin..begin + 4], (length as u32).to_le_bytes());
        let counter = u16::from_le_bytes([content[1], content[2]]);
        (counter, content[begin + 4..].to_vec())
    }

    /// The next motor frame in which a voxel of an area fires, with those before it.
    pub fn motors_until(&mut self, area: &str, voxel: [u32; 3]) -> Vec<MotorFrame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.motors();
            let fires = fired(&frame.1)
                .get(area)
                .is_some_and(|voxels| voxels.contains(&voxel));
            frames.push(frame);
            if fires {
                return frames;
            }
        }
    }
}

/// The id of a reply: base64, or bytes.
fn id_of(id: &Value) -> Vec<u8> {
    if let Some(bytes) = id["bytes"].as_array() {
        return bytes
            .iter()
            .map(|byte| byte.as_u64().expect("a byte") as u8)
            .collect();
    }
    let text = id.as_str().expect("base64");
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |c: u8| alphabet.iter().position(|own| *own == c).expect("base64") as u32;
    let parts = text.as_bytes().chunks_exact(4);
    let bits = parts.map(|part| part.iter().fold(0, |bits, c| bits << 6 | digit(*c)));
    bits.flat_map(|bits: u32| bits.to_be_bytes()[1..].to_vec())
        .collect()
}
