//! Served brains: sessions of their own, our messages, and what is refused.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use tectum::snapshot::Snapshot;
use tectum::{Device, Result, RunStats};
use tectum_control::body::{ActionChannel, BodySpec, ObservationChannel};
use tectum_control::brain::Brain;
use tectum_control::message::{Array, Message};
use tectum_link::{Address, ServeSettings, Served, Server, Token};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, WebSocket};

fn body() -> BodySpec {
    BodySpec {
        name: "cart".into(),
        dt_s: 0.02,
        observation: vec![ObservationChannel::new("x", "m", -1.0..=1.0)],
        action: vec![ActionChannel::new("u", "V", -2.0..=2.0)],
        safe_action: vec![0.25],
    }
}

/// The sum of all observations of its episode: a state that sessions must not share.
#[derive(Default)]
struct Sum(f32);

impl Brain for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        if observation[0] < -100.0 {
            return Err(tectum::Error::data("the brain refuses"));
        }
        self.0 += observation[0];
        action[0] = self.0;
        Ok(RunStats::default())
    }

    fn episode_ended(&mut self) {
        self.0 = 0.0;
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }
}

fn server(change: impl FnOnce(&mut ServeSettings)) -> Server {
    let cpu = Device::open("cpu").expect("always");
    let served = Served::new(body(), cpu, || Ok(Box::new(Sum::default()))).expect("a brain");
    let address = Address::parse("ws://127.0.0.1:0").expect("an address");
    let mut settings = ServeSettings::new(address);
    change(&mut settings);
    Server::start(served, &settings).expect("a free port")
}

type Client = WebSocket<TcpStream>;

/// Connects with headers; the status of a refusal.
fn connect(server: &Server, headers: &[(&'static str, &str)]) -> std::result::Result<Client, u16> {
    let mut request = server
        .address()
        .to_string()
        .into_client_request()
        .expect("an address");
    for (name, value) in headers {
        request
            .headers_mut()
            .insert(*name, value.parse().expect("a header"));
    }
    let stream = TcpStream::connect(server.address().host_and_port()).expect("it listens");
    match tungstenite::client(request, stream) {
        Ok((mut client, _)) => {
            let metadata = receive(&mut client).expect("the server speaks first");
            assert_eq!(metadata.text("server"), Some("tectum"));
            Ok(client)
        }
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

/// The next message, or the text of an error.
fn receive(client: &mut Client) -> std::result::Result<Message, String> {
    loop {
        match client.read() {
            Ok(tungstenite::Message::Binary(content)) => {
                return Message::parse_map(&content).map_err(|error| error.to_string());
            }
            Ok(tungstenite::Message::Text(text)) => return Err(text.as_str().to_owned()),
            Ok(tungstenite::Message::Close(frame)) => {
                return Err(format!(
                    "closed: {:?}",
                    frame.map(|frame| u16::from(frame.code))
                ));
            }
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn send(client: &mut Client, message: &Message) {
    let content = message.to_bytes().expect("short");
    client
        .send(tungstenite::Message::Binary(content.into()))
        .expect("connected");
}

fn ask(client: &mut Client, message: &Message) -> std::result::Result<Message, String> {
    send(client, message);
    receive(client)
}

fn observation(number: u64, x: f32) -> Message {
    body().write_observation(Message::new("observation", number), &[x])
}

/// The action of an answer, and whether it is the safe one.
fn action(answer: &Message) -> (f32, Option<bool>) {
    let numbers = answer
        .array("action")
        .expect("an action")
        .to_f32()
        .expect("float32");
    (numbers[0], answer.flag("safe"))
}

#[test]
fn each_client_has_a_brain_of_its_own_until_it_resets_or_stops() {
    let server = server(|_| {});
    let [mut one, mut other] = [(); 2].map(|()| connect(&server, &[]).expect("two clients"));
    for (number, expected) in [(1, 0.5), (2, 1.0)] {
        let answer = ask(&mut one, &observation(number, 0.5)).expect("an action");
        assert_eq!(
            (answer.kind(), answer.sequence(), action(&answer)),
            ("action", Some(number), (expected, Some(false)))
        );
    }
    let answer = ask(&mut other, &observation(1, 0.125)).expect("an action");
    assert_eq!(action(&answer), (0.125, Some(false)));
    let answer = ask(&mut one, &Message::new("stop", 3)).expect("an answer");
    assert_eq!((answer.kind(), answer.sequence()), ("stop", Some(3)));
    let answer = ask(&mut one, &observation(4, 0.5)).expect("an action");
    assert_eq!(action(&answer), (0.25, Some(true)));
    ask(&mut one, &Message::new("reset", 5)).expect("an answer");
    let answer = ask(&mut one, &observation(6, 1.5)).expect("an action");
    assert_eq!(action(&answer), (1.5, Some(false)));
    // Actions stay in their range.
    let answer = ask(&mut one, &observation(7, 1.5)).expect("an action");
    assert_eq!(action(&answer).0, 2.0);
    let answer = ask(&mut one, &Message::new("hello", 8)).expect("an answer");
    assert_eq!(
        BodySpec::from_message("cart", &answer).expect("a body"),
        body()
    );
    send(&mut one, &Message::new("close", 9));
    assert_eq!(receive(&mut one), Err("closed: Some(1000)".to_owned()));
    let counts = server.counts();
    assert_eq!(
        (
            counts.sessions,
            counts.answers,
            counts.safe_answers,
            counts.resets,
            counts.stops
        ),
        (2, 5, 1, 1, 1)
    );
}

#[test]
fn repeated_numbers_have_no_answer_and_what_is_refused_is_one() {
    let server = server(|_| {});
    let mut client = connect(&server, &[]).expect("a client");
    ask(&mut client, &observation(5, 0.5)).expect("an action");
    for number in [5, 4, 1] {
        send(&mut client, &observation(number, 0.5));
    }
    let answer = ask(&mut client, &observation(6, 0.5)).expect("an action");
    assert_eq!((answer.sequence(), action(&answer).0), (Some(6), 1.0));
    let short = Message::new("observation", 7).with_array("observation", &Array::of_f32(&[]));
    for (message, reason) in [
        (short, "its observation is not 1 numbers of float32"),
        (
            Message::new("kill", 8),
            "message \"kill\" is unknown; known: hello, observation, commands, reset, stop, close",
        ),
        (observation(9, -200.0), "the brain refuses"),
    ] {
        let number = message.sequence();
        let answer = ask(&mut client, &message).expect("an answer");
        assert_eq!((answer.kind(), answer.sequence()), ("error", number));
        assert!(
            answer
                .text("message")
                .is_some_and(|text| text.ends_with(reason)),
            "{answer:?}"
        );
    }
    let answer = ask(&mut client, &observation(10, 0.5)).expect("an action");
    assert_eq!(action(&answer).0, 1.5, "the session continues");
    assert_eq!(
        (server.counts().dropped_observations, server.counts().errors),
        (3, 3)
    );
}

#[test]
fn frames_that_are_no_messages_end_the_connection_with_a_text() {
    let server = server(|_| {});
    for (frame, reason) in [
        (
            tungstenite::Message::Binary(vec![0x81].into()),
            "message: it is not MessagePack",
        ),
        (
            tungstenite::Message::Binary(vec![0x01].into()),
            "message: it is not one map",
        ),
        (
            tungstenite::Message::Text("{}".into()),
            "a text frame; requests are binary frames of MessagePack",
        ),
    ] {
        let mut client = connect(&server, &[]).expect("a client");
        client.send(frame).expect("connected");
        let text = receive(&mut client).expect_err("refused");
        assert!(text.starts_with(reason), "{text}");
        assert_eq!(receive(&mut client), Err("closed: Some(1011)".to_owned()));
    }
    let mut client = connect(&server, &[]).expect("a client");
    // The server ends the connection before it has read all of it.
    let _ = client.send(tungstenite::Message::Binary(vec![0; (16 << 20) + 1].into()));
    assert!(receive(&mut client).is_err());
    assert!(connect(&server, &[]).is_ok(), "the others are served");
}

#[test]
fn tokens_origins_and_numbers_of_clients_are_checked_before_the_handshake() {
    let token = Token::new("secret").expect("a word");
    let server = server(|settings| {
        settings.token = Some(token);
        settings.max_sessions = 2;
    });
    let shown = ("authorization", "Api-Key secret");
    assert_eq!(connect(&server, &[]).err(), Some(401));
    assert_eq!(
        connect(&server, &[("authorization", "Api-Key secreT")]).err(),
        Some(401)
    );
    assert_eq!(
        connect(&server, &[shown, ("origin", "http://example.org")]).err(),
        Some(403)
    );
    let first = connect(&server, &[shown, ("origin", "http://localhost:3000")])
        .expect("a page of this machine");
    let second = connect(&server, &[("authorization", "Bearer secret")]).expect("a client");
    assert_eq!(connect(&server, &[shown]).err(), Some(503));
    assert_eq!(server.counts().refused, 4);
    drop((first, second));
    let again = (0..).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        connect(&server, &[shown]).ok()
    });
    assert!(again.is_some(), "a client that is gone makes room");
}

#[test]
fn a_client_that_sends_too_much_is_ended() {
    let server = server(|settings| settings.max_rate = 10);
    let mut client = connect(&server, &[]).expect("a client");
    for _ in 0..50 {
        // The connection ends while it sends.
        if client
            .send(tungstenite::Message::Ping(vec![].into()))
            .is_err()
        {
            break;
        }
    }
    let found = (0..100).find_map(|_| receive(&mut client).err());
    assert!(
        found.as_ref().is_some_and(
            |text| text == "more than 10 frames per second" || !text.starts_with("closed")
        ),
        "{found:?}"
    );
}

#[test]
fn health_is_one_line_over_http() {
    let server = server(|_| {});
    let (host, port) = server.address().host_and_port();
    let mut stream = TcpStream::connect((host, port)).expect("it listens");
    write!(
        stream,
        "GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nOK\n"),
        "{answer}"
    );
}

#[test]
fn other_machines_need_a_token() {
    let cpu = Device::open("cpu").expect("always");
    let served = Served::new(body(), cpu, || Ok(Box::new(Sum::default()))).expect("a brain");
    let address = Address::parse("ws://0.0.0.0:0").expect("an address");
    let error = Server::start(served, &ServeSettings::new(address))
        .err()
        .expect("refused");
    assert!(error.to_string().contains("needs a token"), "{error}");
}

#[test]
fn a_receipt_has_counts_and_latencies() {
    let server = server(|_| {});
    let mut client = connect(&server, &[]).expect("a client");
    for number in 1..=20 {
        ask(&mut client, &observation(number, 0.0).with("reward", 0.5)).expect("an action");
    }
    let receipt = server.receipt();
    assert_eq!(receipt.runs, 20);
    let workload = receipt.workload.expect("stated");
    assert_eq!(
        (
            &workload["served"]["answers"],
            &workload["served"]["total_reward"]
        ),
        (&20.into(), &10.0.into())
    );
    assert_eq!(workload["brain"], "sum");
}
