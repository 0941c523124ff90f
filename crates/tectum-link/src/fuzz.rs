//! What other processes send, under mutated input: nothing panics, and enough of it is understood
//! for the checks behind the first to be reached.
//!
//! `TECTUM_FUZZ_INPUTS` is the number of inputs for each decoder, 20,000 unless given.

use tectum_control::body::{ActionChannel, BodySpec, ObservationChannel};
use tectum_control::message::{Array, ElementType, Message};

use crate::feagi;
use crate::handshake::{self, Introduction};
use crate::mailbox::Mailbox;
use crate::scenario::file;
#[cfg(unix)]
use crate::serial::line::{Line, LineDecoder};
use crate::serve::em_brain::frame::{Frame, Kind};
use crate::serve::openpi;

#[allow(dead_code, reason = "the other parsers use all of it")]
#[path = "../../tectum-control/tests/parser_fuzz/mutator.rs"]
mod mutator;

use mutator::Mutator;

/// Words of the messages.
const WORDS: &[&str] = &[
    "type",
    "sequence",
    "observation",
    "arrays",
    "__ndarray__",
    "__npgeneric__",
    "dtype",
    "shape",
    "data",
    "<f4",
    "|u1",
    "|O",
    "action",
    "safe_action",
    "period",
    "error",
    "\u{81}\u{a4}",
    "arm",
    "commands",
    "ROBO",
    "\r\n",
    "heart_beat",
    "agent_registration",
    "requested_capabilities",
    "iseen_  ",
];

fn camera() -> BodySpec {
    let number = |name: &str| ObservationChannel::new(name, "m", -1.0..=1.0);
    BodySpec {
        name: "camera".into(),
        dt_s: 0.02,
        observation: vec![
            number("x"),
            number("image").array([2, 2], ElementType::U8),
            number("y").wrapping(1.0),
        ],
        action: vec![ActionChannel::new("u", "V", -1.0..=1.0)],
        safe_action: vec![0.5],
    }
}

fn bytes(message: &Message) -> Vec<u8> {
    message.to_bytes().expect("short")
}

/// Feeds inputs to a decoder, which says whether it understood; returns how many it did.
fn understood(seeds: Vec<Vec<u8>>, mut decode: impl FnMut(&[u8]) -> bool) -> u64 {
    let inputs = std::env::var("TECTUM_FUZZ_INPUTS").ok();
    let inputs: u64 = inputs
        .and_then(|inputs| inputs.parse().ok())
        .unwrap_or(20_000);
    for seed in &seeds {
        assert!(decode(seed), "a seed");
    }
    let mut mutator = Mutator::new(seeds, WORDS, 57);
    let mut count = 0;
    for _ in 0..inputs {
        let input = mutator.next_input();
        if decode(&input) {
            mutator.keep(&input);
            count += 1;
        }
    }
    assert!(count > inputs / 1000, "{count} of {inputs}");
    count
}

#[test]
fn observations_of_openpi_clients_are_read_or_refused() {
    let image = Array {
        element: ElementType::U8,
        shape: vec![2, 2],
        data: vec![0, 1, 254, 255],
    };
    let state = Message::default()
        .with_array("observation/state", &Array::of_f64(&[0.5, -0.5]))
        .with_array("observation/image", &image)
        .with("prompt", "a");
    let single = Message::default()
        .with("x", 0.5)
        .with_array("y", &Array::of_f32(&[0.5]))
        .with_array("image", &image);
    let (spec, mut observation) = (camera(), vec![0.0; 6]);
    understood(vec![bytes(&state), bytes(&single)], |input| {
        let map = Message::parse_map(input);
        map.is_ok_and(|map| openpi::read(&map, &spec, &mut observation).is_ok())
    });
}

#[test]
fn messages_of_bodies_are_read_or_refused() {
    let spec = camera();
    let whole = spec.to_message(Message::new("spec", 1));
    let refusal = Message::new("error", 1).with("message", "taken");
    understood(vec![bytes(&whole)], |input| {
        Message::parse(input).is_ok_and(|message| handshake::read(&message, "a").is_ok())
    });
    assert!(handshake::read(&refusal, "a").is_err());
    let observation = spec
        .write_observation(Message::new("observation", 1), &[0.5; 6])
        .with("answers", 1)
        .with("reward", 0.5)
        .with("terminated", true);
    understood(vec![bytes(&observation)], |input| {
        let mailbox = Mailbox::new();
        let peer = "test".to_owned();
        let body = Introduction {
            spec: spec.clone(),
            peer,
        };
        mailbox.open(body).expect("the first");
        mailbox.start(100, 0);
        mailbox.receive(input, 1);
        let mut latest = Vec::new();
        let is_observed = mailbox.take(&mut latest).observed.is_some();
        assert!(!is_observed || latest.len() == 6);
        is_observed
    });
}

#[test]
fn files_of_bodies_are_read_or_refused() {
    let text = file::write(&camera(), "a peer");
    understood(vec![text.into_bytes()], |input| {
        std::str::from_utf8(input).is_ok_and(|text| file::read(text, "camera").is_ok())
    });
}

#[cfg(unix)]
#[test]
fn lines_of_serial_ports_are_read_or_refused() {
    for (seed, has_checksum) in [("\n0.5,-1e-3\r\narm\n", false), ("\n1,2*2F\n", true)] {
        understood(vec![seed.into()], |input| {
            let mut decoder = LineDecoder::new(2, has_checksum);
            let mut is_read = false;
            for bytes in input.chunks(7) {
                decoder.push(bytes);
                while let Some(line) = decoder.next_line() {
                    if let Line::Numbers(numbers) = line {
                        assert!(numbers.len() == 2 && numbers.iter().all(|n| n.is_finite()));
                        is_read = true;
                    }
                }
            }
            is_read
        });
    }
}

#[test]
fn frames_of_em_brain_are_read_or_refused() {
    let seed = |kind| Frame {
        kind,
        numbers: vec![0.5, -1.0],
    };
    let seeds = [Kind::Sensors, Kind::Handshake].map(|kind| seed(kind).to_bytes());
    understood(seeds.to_vec(), |input| match Frame::decode(input) {
        Ok(Some((frame, size))) => {
            // Reading and writing are inverse, and only whole frames are read.
            assert_eq!(frame.to_bytes(), input[..size]);
            assert_eq!(Frame::decode(&input[..size - 1]), Ok(None));
            true
        }
        _ => false,
    });
}

/// A container with a structure, with an id of 8 or 48 bytes.
fn container(size: feagi::IdSize, structure: &[u8]) -> Vec<u8> {
    feagi::write_container(3, &feagi::AgentId::blank(size), structure)
}

#[test]
fn sensor_frames_of_agents_are_read_or_refused() {
    let areas = feagi::test_areas();
    let voxels = [([3, 0, 2], 0.5), ([0, 0, 1], -1.0)];
    let structure = feagi::write_voxels(&[(*b"iseen___", voxels.to_vec()), (*b"iseen_  ", vec![])]);
    let seeds = [feagi::IdSize::Long, feagi::IdSize::Short].map(|size| container(size, &structure));
    understood(seeds.to_vec(), |input| {
        let Ok(frame) = feagi::Container::parse(input) else {
            return false;
        };
        let Ok(injections) = areas.injections(&frame) else {
            return false;
        };
        // What is understood can be injected as it is.
        let ascends = injections.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_in_range =
            |(neuron, amount): &(u32, f32)| *neuron < 24 && amount.abs() <= areas.max_injected();
        assert!(ascends && injections.iter().all(is_in_range));
        true
    });
}

#[test]
fn requests_of_agents_are_read_or_refused() {
    let documents = [
        "\"heart_beat\"",
        feagi::REGISTRATION,
        r#"{"agent_registration":{"client_request_deregistration":{"reason":null}}}"#,
        r#"{"agent_configuration":{"AgentConfigurationDetails":{"feedbacks":[[]]}}}"#,
    ];
    let seeds = documents.map(|document| {
        let structure = feagi::write_json(document);
        container(feagi::IdSize::Short, &structure)
    });
    understood(seeds.to_vec(), |input| {
        feagi::Container::parse(input)
            .and_then(|container| feagi::Request::of(&container))
            .is_ok_and(|request| feagi::is_supported(&request))
    });
}

#[test]
fn frames_of_zeromq_are_read_or_refused() {
    let long = [7; 300];
    let message = feagi::encode_frames(&[b"", &long, b"a"]);
    let ready = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB".to_vec();
    understood(vec![message, ready], |input| {
        let received = feagi::received_frames(input, 1000);
        received.is_ok_and(|received| !received.is_empty())
    });
}
