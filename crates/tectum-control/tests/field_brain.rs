//! The field as a brain in the closed loop: on any body, resumed exactly, rebuilt after its device
//! was lost.

use std::ops::ControlFlow;

use tectum::snapshot::Snapshot;
use tectum::{Device, Result};
use tectum_control::body::BODIES;
use tectum_control::brain::Brain;
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, End, Sink, TickRecord};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{build_body, build_brain};

#[derive(Default)]
struct Actions(Vec<f32>);

impl Sink for Actions {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.0.push(record.action[0]);
        Ok(())
    }

    fn snapshot(&mut self, _: Snapshot) -> Result<()> {
        Ok(())
    }
}

fn scenario(body: &str) -> Scenario {
    let text = format!(
        "[body]\nname = \"{body}\"\n[brain]\nname = \"field\"\ncells = [8, 8, 8]\nchannels = 64\n[brain.coefficients]\nnoise = 0.01\n\
         [loop]\nseconds = 1\nseed = 3\nclock = \"sim\"\nsnapshot_every = 10\n"
    );
    Scenario::parse(&text, "test", "test").expect("correct")
}

fn brain(scenario: &Scenario, device: &Device) -> Box<dyn Brain> {
    let plant = build_body(scenario).expect("known");
    build_brain(
        scenario,
        plant.as_ref(),
        device,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("it builds")
}

fn devices() -> Vec<Device> {
    let open = |id: &'static str| {
        Device::open_if_present(id)
            .expect("absent or usable")
            .or_else(|| {
                eprintln!("skipped: {id} is absent");
                None
            })
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

#[test]
fn a_field_moves_every_body_within_its_ranges() {
    for name in BODIES.map(|body| body.name) {
        let scenario = scenario(name);
        assert_eq!(
            Scenario::parse(&scenario.to_toml().expect("writable"), "again", "test")
                .expect("the same"),
            scenario
        );
        let cpu = Device::open("cpu").expect("always there");
        let plant = build_body(&scenario).expect("known");
        let channel = plant.spec().action[0].clone();
        let mut closed_loop =
            ClosedLoop::new(plant, brain(&scenario, &cpu), &scenario.run, &cpu).expect("it opens");
        let mut actions = Actions::default();
        let outcome = closed_loop.run(&mut SimClock::new(), &mut actions, &mut |_| {
            ControlFlow::Continue(())
        });
        assert!(
            !matches!(outcome.end, End::Failed(_)),
            "{name}: {:?}",
            outcome.end
        );
        assert!(
            outcome.receipt.recoveries.is_empty(),
            "{name}: {:?}",
            outcome.receipt.recoveries
        );
        assert!(
            actions
                .0
                .iter()
                .all(|action| (channel.low..=channel.high).contains(action)),
            "{name}: {:?}",
            actions.0
        );
        assert!(
            actions.0.windows(2).any(|pair| pair[0] != pair[1]),
            "{name} is moved"
        );
    }
}

#[test]
fn a_killed_brain_goes_on_from_its_snapshot_exactly() {
    let scenario = scenario("pendulum");
    for device in devices() {
        let run = |brain: &mut dyn Brain, ticks: std::ops::Range<u32>| -> Vec<f32> {
            let mut action = [0.0];
            let mut one = |tick: u32| {
                let angle = 0.1 * tick as f32;
                brain
                    .tick(&[angle.cos(), angle.sin(), 0.5 * angle.sin()], &mut action)
                    .expect("it runs");
                action[0]
            };
            ticks.map(&mut one).collect()
        };
        let mut first = brain(&scenario, &device);
        run(first.as_mut(), 0..25);
        let bytes = first.snapshot().expect("readable").to_bytes();
        let expected = run(first.as_mut(), 25..60);
        let rebuild = first.rebuild().expect("it can be rebuilt");
        drop(first);
        let mut second = rebuild(&device).expect("it builds");
        second
            .restore(&Snapshot::parse(&bytes).expect("whole"))
            .expect("of this field");
        assert_eq!(
            run(second.as_mut(), 25..60),
            expected,
            "on {}",
            device.info().id
        );
    }
}

#[test]
fn a_reward_reaches_the_field_through_its_channel_and_is_no_sensor() {
    let text = |reward: &str| {
        let text = format!(
            "[body]\nname = \"seeker\"\n[brain]\nname = \"field\"\ncells = [8, 8, 8]\npatterns = 8\n{reward}[loop]\nseconds = 1\n"
        );
        Scenario::parse(&text, "test", "test").expect("correct")
    };
    let told = text("reward = \"reward\"\n");
    assert_eq!(
        Scenario::parse(&told.to_toml().expect("writable"), "again", "test").expect("the same"),
        told
    );
    for device in devices() {
        let run = |reward: f32| {
            let mut brain = brain(&told, &device);
            let mut action = [0.0; 2];
            for _ in 0..5 {
                brain
                    .tick(&[0.5, 0.25, 0.0, 0.0, 0.0, 0.0, reward], &mut action)
                    .expect("it runs");
            }
            brain.snapshot().expect("readable")
        };
        let [punished, rewarded] = [-1.0, 1.0].map(run);
        let traits =
            |snapshot: &Snapshot| snapshot.f32("traits", 4 * (8 + 20)).expect("kept").to_vec();
        // Five attractors with the sign of the reward, the first four a twentieth weaker with each
        // cycle.
        for (snapshot, sign) in [(&punished, -1.0), (&rewarded, 1.0)] {
            let attractors = traits(snapshot)[4 * 8..].to_vec();
            for (place, own) in attractors.chunks_exact(4).enumerate() {
                let expected = if place < 5 {
                    [0.95f32.powi(4 - place as i32), sign]
                } else {
                    [0.0, 0.0]
                };
                assert!(
                    (own[1] - expected[0]).abs() < 1e-6 && own[3] == expected[1],
                    "place {place} on {}: {own:?}",
                    device.info().id
                );
            }
        }
        // Six sensors without the reward: the seventh keeps its first confidence, and no history.
        let silent = |snapshot: &Snapshot| snapshot.f32("memory", 1152).expect("kept")[64 + 6];
        assert_eq!((silent(&punished), silent(&rewarded)), (0.0, 0.0));
    }
}
