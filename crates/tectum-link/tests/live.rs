//! A run that is shown: its page, its feed, orders, and who may see and steer it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tectum::{Device, Result};
use tectum_control::body::body;
use tectum_control::brain::Stateless;
use tectum_control::clock::{ClockKind, RealClock};
use tectum_control::closed_loop::{
    ClosedLoop, End, Fault, LoopSettings, Outcome, Sink, TickRecord,
};
use tectum_control::live::{About, Live, PacedClock};
use tectum_control::ros::{Decoder, Definition};
use tectum_link::{Address, LiveServer, LiveSettings, Token};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

fn serve(live: &Live, token: Option<&str>) -> LiveServer {
    let address = Address::parse_http("127.0.0.1:0").expect("an address");
    let settings = LiveSettings {
        token: token.map(|text| Token::new(text).expect("a word")),
        ..LiveSettings::new(address)
    };
    LiveServer::start(live, &settings).expect("a free port")
}

/// The response to a request: status, headers in small letters, content.
fn get(server: &LiveServer, path: &str, headers: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(server.address().host_and_port()).expect("it listens");
    let host = if headers.contains("Host:") {
        ""
    } else {
        "Host: localhost\r\n"
    };
    write!(
        stream,
        "GET {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n"
    )
    .expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("text");
    let (head, content) = response.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
    (
        status.expect("a status"),
        head.to_lowercase(),
        content.to_owned(),
    )
}

/// A viewer, and what it was sent.
struct Viewer {
    socket: WebSocket<TcpStream>,
    texts: Vec<Value>,
    /// Words of the frames, without the heads of the batches.
    frames: Vec<Vec<u32>>,
}

impl Viewer {
    fn connect(
        server: &LiveServer,
        headers: &[(&'static str, &str)],
    ) -> std::result::Result<Self, u16> {
        let (host, port) = server.address().host_and_port();
        let mut request = format!("ws://{host}:{port}/live")
            .into_client_request()
            .expect("an address");
        for (name, value) in headers {
            let value = value.parse().expect("a header");
            request.headers_mut().insert(*name, value);
        }
        let stream = TcpStream::connect((host, port)).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a socket");
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self {
                socket,
                texts: Vec::new(),
                frames: Vec::new(),
            }),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                Err(response.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn order(&mut self, order: &Value) {
        self.socket
            .send(Message::Text(order.to_string().into()))
            .expect("connected");
    }

    /// Reads one message; false after the end.
    fn read(&mut self) -> bool {
        match self.socket.read() {
            Ok(Message::Text(text)) => {
                let text = serde_json::from_str(text.as_str()).expect("JSON");
                self.texts.push(text);
            }
            Ok(Message::Binary(bytes)) => {
                let words = bytes.as_chunks::<4>().0.iter();
                let words: Vec<u32> = words.map(|word| u32::from_le_bytes(*word)).collect();
                assert_eq!(words[..2], [1, 0]);
                let frames = words[4..].chunks_exact(words[2] as usize);
                self.frames.extend(frames.map(<[u32]>::to_vec));
            }
            Ok(Message::Close(_)) | Err(_) => return false,
            Ok(_) => {}
        }
        true
    }

    /// Reads until a text fits.
    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut seen = 0;
        loop {
            if let Some(found) = self.texts[seen..].iter().find(|text| fits(text)) {
                return found.clone();
            }
            seen = self.texts.len();
            assert!(self.read(), "the end, after {:?}", self.texts.last());
        }
    }

    fn of_type(&mut self, kind: &str) -> Value {
        self.until(|text| text["type"] == kind)
    }

    fn read_to_end(&mut self) {
        while self.read() {}
    }

    fn step_of(frame: &[u32]) -> u64 {
        u64::from(frame[0]) | u64::from(frame[1]) << 32
    }
}

/// Keeps every period.
#[derive(Default)]
struct Periods(Vec<(Vec<f32>, f64, bool)>);

impl Sink for Periods {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        let numbers = record.observation.iter().chain(record.action).copied();
        self.0
            .push((numbers.collect(), record.reward, record.fallback));
        Ok(())
    }
}

/// A pendulum under a proportional controller, and what it shows.
fn pendulum(live: &Live, seconds: f64) -> ClosedLoop {
    let plant = body("pendulum", None).expect("built in");
    let brain = Stateless::new("push", |observation: &[f32], action: &mut [f32]| {
        action[0] = -observation[1];
    });
    let settings = LoopSettings {
        seconds,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu").expect("always");
    let mut closed_loop =
        ClosedLoop::new(plant, Box::new(brain), &settings, &cpu).expect("it fits");
    let drawn = body("pendulum", None).expect("built in");
    closed_loop.show(live, Some(drawn));
    live.set_about(About {
        title: "pendulum".to_owned(),
        steps: Some(closed_loop.ticks()),
        ..About::default()
    });
    closed_loop
}

/// Runs a loop in simulated time at the pace of its viewers.
fn simulate(live: &Live, closed_loop: &mut ClosedLoop, sink: &mut dyn Sink) -> Outcome {
    let controls = live.controls();
    let never = || false;
    let mut clock = PacedClock::new(controls.clone(), &never);
    closed_loop.run(&mut clock, sink, &mut |_| match controls.is_stopped() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
}

fn finish(live: &Live, outcome: &Outcome) {
    let summary = json!({ "ticks": outcome.metrics.ticks, "return": outcome.metrics.total_reward });
    live.end(&summary, &outcome.receipt).expect("JSON");
}

#[test]
fn the_page_and_its_files_have_a_policy_and_no_cookie() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let (status, head, content) = get(&server, path, "");
        assert_eq!(status, 200, "{path}");
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        let policy = "content-security-policy: default-src 'none'; script-src 'self'; ";
        assert!(head.contains(policy), "{head}");
        assert!(!head.contains("set-cookie") && !content.is_empty());
        assert!(head.contains("x-content-type-options: nosniff"));
    }
    for path in ["/Cargo.toml", "/..%2fCargo.toml", "/page.js/x", "/nothing"] {
        assert_eq!(get(&server, path, "").0, 404, "{path}");
    }
    assert_eq!(get(&server, "/healthz", "").2, "OK\n");
    assert_eq!(get(&server, "/readyz", "").0, 503, "no step yet");
}

#[test]
fn other_origins_and_hosts_are_refused_everywhere() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    for path in ["/", "/live", "/metrics", "/summary", "/healthz", "/page.js"] {
        for headers in [
            "Origin: http://example.org\r\n",
            "Origin: null\r\n",
            "Host: example.org\r\n",
            "Host: example.org\r\nOrigin: http://example.org\r\n",
        ] {
            let (status, head, _) = get(&server, path, headers);
            assert_eq!(status, 403, "{path} {headers}");
            assert!(head.contains("content-security-policy"), "{head}");
        }
    }
    let refused = Viewer::connect(&server, &[("origin", "http://example.org")]);
    assert_eq!(refused.err(), Some(403));
    // Another page of this machine neither sees nor steers; the server's own page does.
    let other = Viewer::connect(&server, &[("origin", "http://localhost:1")]);
    assert_eq!(other.err(), Some(403));
    let (host, port) = server.address().host_and_port();
    let own = format!("http://{host}:{port}");
    assert!(Viewer::connect(&server, &[("origin", &own)]).is_ok());
}

#[test]
fn frames_quantities_and_the_end_are_those_of_the_run() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    let mut closed_loop = pendulum(&live, 10.0);
    closed_loop
        .inject(&["nan@3".parse::<Fault>().expect("a fault")])
        .expect("in the run");
    live.controls().pause(true).expect("simulated");
    let mut viewer = Viewer::connect(&server, &[]).expect("a viewer");
    let run = viewer.of_type("run");
    assert_eq!(run["about"]["title"], "pendulum");
    let series = run["streams"][0]["series"].as_array().expect("a list");
    let names: Vec<&str> = series
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    let spec = closed_loop.body_spec().clone();
    let observed = spec.observation.iter().map(|channel| &*channel.name);
    let applied = spec.action.iter().map(|channel| &*channel.name);
    let expected: Vec<&str> = observed
        .chain(applied)
        .chain(["reward", "latency"])
        .collect();
    assert_eq!(names, expected);
    assert_eq!(series[0]["low"], json!(spec.observation[0].low));
    assert_eq!(series[0]["unit"], json!(spec.observation[0].unit));
    // Slow enough that no frame is left out.
    viewer.order(&json!({ "type": "speed", "speed": 20.0 }));
    viewer.order(&json!({ "type": "continue" }));
    let mut periods = Periods::default();
    let outcome = simulate(&live, &mut closed_loop, &mut periods);
    finish(&live, &outcome);
    let reading = std::thread::spawn(move || {
        viewer.read_to_end();
        viewer
    });
    server.close(Duration::from_secs(10));
    let viewer = reading.join().expect("no panic");
    assert_eq!(viewer.frames.len() as u64, outcome.metrics.ticks);
    for (frame, (tick, (numbers, reward, fallback))) in
        viewer.frames.iter().zip(periods.0.iter().enumerate())
    {
        assert_eq!(Viewer::step_of(frame), tick as u64);
        let shown = frame[5..].iter().map(|word| f32::from_bits(*word));
        let shown: Vec<f32> = shown.take(numbers.len() + 1).collect();
        assert_eq!(shown[..numbers.len()], numbers[..]);
        assert_eq!(shown[numbers.len()], *reward as f32);
        assert_eq!(frame[4] & 4 != 0, *fallback, "tick {tick}");
    }
    let state = viewer.texts.iter().rfind(|text| text["type"] == "state");
    let quantities = &state.expect("a state")["quantities"];
    assert_eq!(quantities["ticks"], json!(outcome.metrics.ticks));
    assert_eq!(quantities["fallbacks"], json!(outcome.metrics.fallbacks));
    assert_eq!(quantities["return"], json!(outcome.metrics.total_reward));
    let end = viewer.texts.last().expect("texts");
    assert_eq!(end["type"], "end");
    assert_eq!(
        end["summary"]["return"],
        json!(outcome.metrics.total_reward)
    );
    assert_eq!(
        end["receipt"]["trace"],
        json!(outcome.receipt.trace.map(|trace| trace.to_string()))
    );
    let events = viewer.texts.iter().filter(|text| text["type"] == "event");
    let kinds: Vec<&str> = events
        .filter_map(|text| text["event"]["kind"].as_str())
        .collect();
    for kind in ["injected", "fallback", "recovery", "control"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let drawings = viewer.texts.iter().filter(|text| text["type"] == "drawing");
    let drawings: std::collections::BTreeSet<String> = drawings.map(Value::to_string).collect();
    assert!(drawings.len() > 3, "the body moves");
}

#[test]
fn a_viewer_pauses_steps_and_stops_a_run() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    let mut closed_loop = pendulum(&live, 1e6);
    let mut viewer = Viewer::connect(&server, &[]).expect("a viewer");
    viewer.of_type("run");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| simulate(&live, &mut closed_loop, &mut Periods::default()));
        viewer.order(&json!({ "type": "pause" }));
        viewer.until(|text| text["paused"] == true);
        let ticks = |state: &Value| state["quantities"]["ticks"].as_u64().expect("a count");
        // The step that had begun before the pause is counted by now.
        viewer.texts.clear();
        viewer.of_type("state");
        viewer.texts.clear();
        let before = ticks(&viewer.of_type("state"));
        viewer.texts.clear();
        for _ in 0..3 {
            viewer.order(&json!({ "type": "step" }));
        }
        let after = viewer
            .until(|text| text["type"] == "state" && text["quantities"]["ticks"] != json!(before));
        let end = Instant::now() + Duration::from_millis(300);
        let mut last = ticks(&after);
        while Instant::now() < end {
            viewer.texts.clear();
            last = ticks(&viewer.of_type("state"));
        }
        assert_eq!(last, before + 3);
        assert_eq!(get(&server, "/readyz", "").0, 200, "paused is ready");
        for (order, reason) in [
            (
                json!({ "type": "speed", "speed": -1 }),
                "speed -1: it needs 0.01 to 1000",
            ),
            (
                json!({ "type": "reboot" }),
                "order: unknown variant `reboot`",
            ),
        ] {
            viewer.texts.clear();
            viewer.order(&order);
            let refused = viewer.of_type("refused");
            let text = refused["reason"].as_str().expect("a text");
            assert!(text.starts_with(reason), "{text}");
        }
        viewer.order(&json!({ "type": "stop" }));
        let outcome = running.join().expect("no panic");
        assert!(matches!(outcome.end, End::Interrupted));
        // The step that the stop has released is the last one.
        assert!(outcome.metrics.ticks <= before + 4);
    });
}

#[test]
fn under_a_real_clock_a_viewer_only_stops_with_the_safe_action() {
    let live = Live::new(ClockKind::Real);
    let server = serve(&live, None);
    let mut closed_loop = pendulum(&live, 1.0);
    let mut viewer = Viewer::connect(&server, &[]).expect("a viewer");
    assert_eq!(viewer.of_type("run")["is_simulated"], false);
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            closed_loop.run(&mut RealClock::new(), &mut Periods::default(), &mut |_| {
                ControlFlow::Continue(())
            })
        });
        viewer.order(&json!({ "type": "pause" }));
        let refused = viewer.of_type("refused");
        let reason = "pause: the clock of this run is real; only stop is possible";
        assert_eq!(refused["reason"], reason);
        viewer.order(&json!({ "type": "stop" }));
        running.join().expect("no panic")
    });
    assert_eq!(outcome.metrics.ticks, closed_loop.ticks(), "to its end");
    assert!(outcome.stopped_at_tick.is_some());
}

#[test]
fn where_a_token_is_needed_nothing_is_seen_or_steered_without_it() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, Some("secret"));
    for path in ["/metrics", "/summary", "/receipt"] {
        assert_eq!(get(&server, path, "").0, 401, "{path}");
        let (status, ..) = get(&server, path, "Authorization: Bearer secreT\r\n");
        assert_eq!(status, 401, "{path}");
        let (status, ..) = get(&server, path, "Authorization: Bearer secret\r\n");
        assert_eq!(status, 200, "{path}");
    }
    assert_eq!(get(&server, "/", "").0, 200, "the page asks for it");
    for message in [
        json!({ "type": "token", "token": "secreT" }),
        json!({ "type": "pause" }),
        json!({ "type": "stop" }),
    ] {
        let mut viewer = Viewer::connect(&server, &[]).expect("a viewer");
        viewer.of_type("token");
        viewer.order(&message);
        viewer.read_to_end();
        assert_eq!(viewer.texts.len(), 1, "nothing but the question");
    }
    let controls = live.controls();
    assert!(!controls.is_paused() && !controls.is_stopped());
    let mut viewer = Viewer::connect(&server, &[]).expect("a viewer");
    viewer.order(&json!({ "type": "token", "token": "secret" }));
    viewer.of_type("run");
    let header = [("authorization", "Bearer secret")];
    let mut program = Viewer::connect(&server, &header).expect("a viewer");
    program.of_type("run");
    program.order(&json!({ "type": "pause" }));
    program.until(|text| text["paused"] == true);
    assert!(controls.is_paused());
    // Its own page, by whatever name.
    let own = "Host: robot:1\r\nOrigin: http://robot:1\r\n";
    assert_eq!(get(&server, "/", own).0, 200);
    let other = "Host: robot:1\r\nOrigin: http://robot:2\r\n";
    assert_eq!(get(&server, "/", other).0, 403);
}

#[test]
fn a_later_viewer_gets_the_past_and_after_the_end_also_the_end() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    let mut closed_loop = pendulum(&live, 4.0);
    live.controls().set_speed(Some(40.0)).expect("in range");
    let outcome = simulate(&live, &mut closed_loop, &mut Periods::default());
    finish(&live, &outcome);
    server.show_end();
    for _ in 0..2 {
        let mut viewer = Viewer::connect(&server, &[]).expect("a viewer");
        viewer.of_type("end");
        let steps: Vec<u64> = viewer
            .frames
            .iter()
            .map(|frame| Viewer::step_of(frame))
            .collect();
        assert_eq!(steps, (0..outcome.metrics.ticks).collect::<Vec<_>>());
        assert_eq!(viewer.texts[0]["type"], "run");
    }
    let (status, _, summary) = get(&server, "/summary", "");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(
        (status, &summary["ticks"]),
        (200, &json!(outcome.metrics.ticks))
    );
    assert_eq!(get(&server, "/readyz", "").0, 503, "it has ended");
}

#[test]
fn viewers_that_come_before_the_run_is_described_get_its_description() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    let mut early = Viewer::connect(&server, &[]).expect("a viewer");
    assert_eq!(early.of_type("run")["streams"], json!([]));
    let mut client = foxglove(&server, "foxglove.sdk.v1").expect("a client");
    let topics = |advertised: &Value| -> Vec<Value> {
        let channels = advertised["channels"].as_array().expect("a list");
        channels
            .iter()
            .map(|channel| channel["topic"].clone())
            .collect()
    };
    assert_eq!(next_json(&mut client)["op"], "serverInfo");
    assert_eq!(topics(&next_json(&mut client)), ["/events"]);
    let mut closed_loop = pendulum(&live, 1.0);
    early.texts.clear();
    let run = early.until(|text| text["about"]["title"] == "pendulum");
    assert_eq!(run["streams"][0]["name"], "loop");
    loop {
        let gone = next_json(&mut client);
        assert_eq!(gone["op"], "unadvertise");
        let advertised = next_json(&mut client);
        if topics(&advertised).len() == 5 {
            assert!(advertised["channels"][0]["id"].as_u64() >= Some(1));
            break;
        }
    }
    live.controls().set_speed(Some(20.0)).expect("in range");
    let outcome = simulate(&live, &mut closed_loop, &mut Periods::default());
    finish(&live, &outcome);
    server.show_end();
    early.read_to_end();
    assert_eq!(early.frames.len() as u64, outcome.metrics.ticks);
}

#[test]
fn metrics_agree_with_the_outcome_in_both_formats() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    let mut closed_loop = pendulum(&live, 5.0);
    let outcome = simulate(&live, &mut closed_loop, &mut Periods::default());
    let receipt = serde_json::to_value(&outcome.receipt).expect("JSON");
    live.set_about(About {
        title: "a \"run\"".to_owned(),
        receipt,
        ..About::default()
    });
    let (_, head, text) = get(&server, "/metrics", "");
    assert!(head.contains("content-type: text/plain; version=0.0.4"));
    let samples: BTreeMap<&str, f64> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, value)| (name, value.parse().expect("a number")))
        .collect();
    let ticks = outcome.metrics.ticks as f64;
    assert_eq!(samples["tectum_ticks_total"], ticks);
    assert_eq!(samples["tectum_return"], outcome.metrics.total_reward);
    assert_eq!(samples["tectum_tick_duration_seconds_count"], ticks);
    assert_eq!(
        samples["tectum_tick_duration_seconds_bucket{le=\"+Inf\"}"],
        ticks
    );
    let buckets = samples.keys().filter(|name| name.contains("_bucket{"));
    assert_eq!(buckets.count(), 17);
    let version = env!("CARGO_PKG_VERSION");
    let info = format!(
        "tectum_run_info{{run=\"a \\\"run\\\"\",device=\"cpu\",version=\"{version}\"}} 1\n"
    );
    assert!(text.contains(&info), "{text}");
    assert!(text.contains("# TYPE tectum_ticks_total counter\n"));
    let accept = "Accept: application/openmetrics-text; version=1.0.0\r\n";
    let (_, head, open) = get(&server, "/metrics", accept);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(open.contains("# TYPE tectum_ticks counter\n"));
    assert!(open.contains(&format!("\ntectum_ticks_total {ticks}\n")));
    assert!(open.ends_with("\n# EOF\n"));
}

#[test]
fn addresses_of_other_machines_need_a_token() {
    let live = Live::new(ClockKind::Sim);
    let address = Address::parse_http("0.0.0.0:0").expect("an address");
    let error = LiveServer::start(&live, &LiveSettings::new(address))
        .err()
        .expect("refused");
    assert!(error.to_string().contains("needs a token"), "{error}");
}

/// A client of Foxglove's protocol.
fn foxglove(server: &LiveServer, protocol: &str) -> std::result::Result<WebSocket<TcpStream>, u16> {
    let (host, port) = server.address().host_and_port();
    let mut request = format!("ws://{host}:{port}/")
        .into_client_request()
        .expect("an address");
    let value = protocol.parse().expect("a header");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", value);
    let stream = TcpStream::connect((host, port)).expect("it listens");
    match tungstenite::client(request, stream) {
        Ok((socket, response)) => {
            assert_eq!(response.headers()["sec-websocket-protocol"], protocol);
            Ok(socket)
        }
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

/// The next text of a client.
fn next_json(socket: &mut WebSocket<TcpStream>) -> Value {
    loop {
        if let Message::Text(text) = socket.read().expect("connected") {
            return serde_json::from_str(text.as_str()).expect("JSON");
        }
    }
}

#[test]
fn foxglove_gets_every_topic_as_ros_messages() {
    let live = Live::new(ClockKind::Sim);
    let server = serve(&live, None);
    let mut closed_loop = pendulum(&live, 4.0);
    closed_loop
        .inject(&["nan@2".parse::<Fault>().expect("a fault")])
        .expect("in the run");
    live.controls().set_speed(Some(10.0)).expect("in range");
    live.controls().pause(true).expect("simulated");
    assert_eq!(foxglove(&server, "chat").err(), Some(400));
    for protocol in ["foxglove.sdk.v1", "foxglove.websocket.v1"] {
        assert!(foxglove(&server, protocol).is_ok());
    }
    let mut client = foxglove(&server, "foxglove.sdk.v1").expect("a client");
    let information = next_json(&mut client);
    assert_eq!(information["op"], "serverInfo");
    assert_eq!(information["capabilities"], json!(["time"]));
    let advertised = next_json(&mut client);
    let channels = advertised["channels"].as_array().expect("a list");
    let topics: Vec<&str> = channels
        .iter()
        .filter_map(|channel| channel["topic"].as_str())
        .collect();
    assert_eq!(
        topics,
        ["/observation", "/action", "/task", "/timing", "/events"]
    );
    let subscriptions = (0..5).map(|channel| json!({ "id": 10 + channel, "channelId": channel }));
    let subscriptions: Vec<Value> = subscriptions.collect();
    for request in [
        json!({ "op": "subscribe", "subscriptions": subscriptions }),
        json!({ "op": "subscribe", "subscriptions": [{ "id": 99, "channelId": 7 }] }),
    ] {
        client
            .send(Message::Text(request.to_string().into()))
            .expect("connected");
    }
    let status = next_json(&mut client);
    assert_eq!(
        (&status["level"], &status["message"]),
        (&json!(2), &json!("subscribe: there is no channel 7"))
    );
    let mut periods = Periods::default();
    live.controls().pause(false).expect("simulated");
    simulate(&live, &mut closed_loop, &mut periods);
    let mut decoders: Vec<(Decoder, Vec<Vec<f64>>)> = channels
        .iter()
        .map(|channel| {
            assert_eq!(
                (&channel["encoding"], &channel["schemaEncoding"]),
                (&json!("cdr"), &json!("ros2msg"))
            );
            let name = channel["schemaName"].as_str().expect("a name");
            let schema = channel["schema"].as_str().expect("a schema");
            let definition = Definition::parse(name, schema).expect("a definition");
            let paths: Vec<String> = definition
                .listed_fields()
                .iter()
                .filter_map(|field| field.strip_suffix(": float64").map(str::to_owned))
                .collect();
            (
                Decoder::new(&definition, &paths).expect("fields"),
                Vec::new(),
            )
        })
        .collect();
    server.show_end();
    let mut last_time_ns = 0;
    while let Ok(message) = client.read() {
        let Message::Binary(bytes) = message else {
            continue;
        };
        let number =
            |from: usize| u64::from_le_bytes(bytes[from..from + 8].try_into().expect("eight"));
        match bytes[0] {
            1 => {
                let id = u32::from_le_bytes(bytes[1..5].try_into().expect("four bytes"));
                let (decoder, messages) = &mut decoders[id as usize - 10];
                let fields = decoder.decode(&bytes[13..]).expect("CDR");
                let numbers = (0..).map_while(|path| fields.number(path));
                messages.push(numbers.map(|number| number.to_f64()).collect());
            }
            2 => last_time_ns = number(1),
            opcode => panic!("opcode {opcode}"),
        }
    }
    let ticks = periods.0.len();
    for (topic, (_, messages)) in topics.iter().zip(&decoders) {
        match *topic {
            "/events" => assert!(messages.len() >= 2, "the fault and the recovery"),
            topic => assert_eq!(messages.len(), ticks, "{topic}"),
        }
    }
    let observed = closed_loop.body_spec().observation_len();
    for (message, (numbers, ..)) in decoders[0].1.iter().zip(&periods.0) {
        let expected: Vec<f64> = numbers[..observed].iter().copied().map(f64::from).collect();
        assert_eq!(*message, expected);
    }
    let dt_ns = (closed_loop.body_spec().dt_s * 1e9).round() as u64;
    assert_eq!(last_time_ns, (ticks as u64 - 1) * dt_ns);
}
