//! A policy server as the brain of a body in this process.

use std::ops::ControlFlow;
use std::time::Duration;

use tectum::{Device, WorkProgress};
use tectum_control::body::body;
use tectum_control::brain::{Brain, Stateless};
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{Discard, Outcome};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};
use tectum_link::{Address, ServeSettings, Served, Server};

/// The regulator of the pendulum, as the law of a server and as a brain of this process.
fn law(observation: &[f32], action: &mut [f32]) {
    action[0] = (-8.0 * observation[0] - 2.0 * observation[1]).clamp(-2.0, 2.0);
}

fn server(delay: Duration) -> Server {
    let spec = body("pendulum", None).expect("built in").spec().clone();
    let cpu = Device::open("cpu").expect("always");
    let brain = move || -> tectum::Result<Box<dyn Brain>> {
        Ok(Box::new(Stateless::new(
            "law",
            move |observation: &[f32], action: &mut [f32]| {
                std::thread::sleep(delay);
                law(observation, action);
            },
        )))
    };
    let served = Served::new(spec, cpu, brain).expect("a brain");
    let address = Address::parse("ws://127.0.0.1:0").expect("an address");
    Server::start(served, &ServeSettings::new(address)).expect("a free port")
}

fn run(brain: &str, clock: &str, seconds: f64) -> Outcome {
    tectum_link::register(|_| {}).expect("once or again");
    let text = format!(
        "[body]\nname = \"pendulum\"\n[brain]\n{brain}\n[loop]\nseconds = {seconds}\nclock = \"{clock}\"\n"
    );
    let scenario = Scenario::parse(&text, "a.toml", "a").expect("valid");
    let again = Scenario::parse(&scenario.to_toml().expect("plain"), "b.toml", "b");
    assert_eq!(again.expect("its own text").brain, scenario.brain);
    let body = build_body(&scenario).expect("built in");
    let recipe = brain_recipe(&scenario, body.spec()).expect("it fits");
    let cpu = Device::open("cpu").expect("always");
    let mut closed_loop =
        build_loop(&scenario, body, recipe, &cpu, &mut WorkProgress::ignore).expect("they fit");
    let clock = if clock == "sim" {
        ClockKind::Sim
    } else {
        ClockKind::Real
    };
    closed_loop.run(clock.start().as_mut(), &mut Discard, &mut |_| {
        ControlFlow::Continue(())
    })
}

#[test]
fn a_server_in_simulated_time_gives_the_bits_of_the_same_law_in_this_process() {
    let server = server(Duration::ZERO);
    let brain = format!("remote = \"{}\"", server.address());
    let remote = run(&brain, "sim", 20.0).into_result().expect("no failure");
    assert_eq!((remote.metrics.ticks, server.counts().answers), (400, 400));
    let mut plant = body("pendulum", None).expect("built in");
    plant.reset(1);
    let local = Stateless::new("law", law);
    let cpu = Device::open("cpu").expect("always");
    let settings = tectum_control::closed_loop::LoopSettings {
        seconds: 20.0,
        ..Default::default()
    };
    let mut local =
        tectum_control::closed_loop::ClosedLoop::new(plant, Box::new(local), &settings, &cpu)
            .expect("they fit");
    let pendulum = tectum_control::body::Descriptor::of("pendulum").expect("built in");
    local.set_task((pendulum.task)());
    let local = local.simulate().into_result().expect("no failure");
    assert_eq!(remote.receipt.trace, local.receipt.trace);
}

#[test]
fn a_slow_server_never_blocks_a_tick_and_a_gone_one_is_a_safe_action() {
    let server = server(Duration::from_millis(200));
    let brain = format!("remote = \"{}\"", server.address());
    let outcome = run(&brain, "real", 2.0);
    // An answer takes four periods: none of them waited.
    assert_eq!(outcome.metrics.ticks, 40);
    assert!(
        outcome.metrics.deadline_misses > 20,
        "{:?}",
        outcome.metrics
    );
    assert!(outcome.latency.percentiles().p50 < 50.0, "a period");
    let answers = server.counts().answers;
    assert!(answers > 0 && answers < 12, "{answers}");
    drop(server);
    let text = format!("[body]\nname = \"pendulum\"\n[brain]\n{brain}\nwait = 0.1\n");
    let scenario = Scenario::parse(&text, "a.toml", "a").expect("valid");
    let spec = body("pendulum", None).expect("built in").spec().clone();
    let error = brain_recipe(&scenario, &spec)
        .err()
        .expect("it is gone")
        .to_string();
    assert!(
        error.starts_with("brain remote ws://127.0.0.1:") && error.ends_with("within 0.1 s"),
        "{error}"
    );
}
