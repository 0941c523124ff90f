//! Builds the body and the brain of a scenario.

use std::time::{Duration, Instant};

use serde_json::json;
use tectum::route::{self, Choice};
use tectum::{Device, Error, Result, Watch, WorkProgress};
use toml::{Table, Value};

use super::{BrainSpec, Scenario};
use crate::body::equations::ENDING;
use crate::body::motors::Driven;
use crate::body::mujoco::PREFIX;
use crate::body::task::Task;
use crate::body::{self, Body, BodySpec, Family, Start};
use crate::brain::{Brain, BrainContext, DeviceRecipe, Recipe, StandIn};
use crate::closed_loop::ClosedLoop;
use crate::live::{About, Live};
use crate::recorded;

/// Makes the plant of a scenario, at the start of its seed. Where the brain states a stage between
/// its actions and the motors, the plant is driven by it.
///
/// # Errors
/// As [`BodySettings::plant`](super::BodySettings::plant), [`BrainSpec::motors`] and
/// [`Driven::new`].
pub fn build_body(scenario: &Scenario) -> Result<Box<dyn Body>> {
    let mut plant = scenario.body.plant()?;
    if let Some((motors, period_s)) = scenario.brain.motors(plant.spec())? {
        plant = Box::new(Driven::new(plant, &motors, period_s)?);
    }
    plant.reset(scenario.run.seed);
    Ok(plant)
}

/// Makes a body: a built-in one by its name, that of an equation file, `FILE.plant`, or of a MuJoCo
/// model, `mujoco:SCENE.xml`. Without a start it has its own.
///
/// # Errors
/// An unknown name, listing the known ones; a file that cannot be read or is not valid.
pub fn named_body(name: &str, start: Option<Start>) -> Result<Box<dyn Body>> {
    recorded::register()?;
    let is_family = Family::all()
        .iter()
        .any(|family| name.starts_with(family.prefix));
    if !name.ends_with(ENDING) && !name.starts_with(PREFIX) && !is_family {
        return body::body(name, start);
    }
    let mut scenario = body_scenario(name)?;
    scenario.body.start = start;
    build_body(&scenario)
}

/// The scenario of a body by its name, with default settings and the brain `zero`.
///
/// # Errors
/// As [`named_body`].
pub fn body_scenario(name: &str) -> Result<Scenario> {
    let table = |name: &str| Table::from_iter([("name".to_owned(), Value::from(name))]);
    let text = Table::from_iter([
        ("body".to_owned(), table(name).into()),
        ("brain".to_owned(), table("zero").into()),
    ])
    .to_string();
    Scenario::parse(&text, name, name)
}

/// The constants of a scenario's body, of which no instance is stepped; with a stage of motors, its
/// targets are the actions.
///
/// # Errors
/// As [`build_body`].
pub fn driven_spec(scenario: &Scenario) -> Result<BodySpec> {
    let model = scenario.body.model()?;
    match scenario.brain.motors(model.spec())? {
        Some((motors, period_s)) => motors.spec(model.spec(), period_s),
        None => Ok(model.spec().clone()),
    }
}

/// Makes the task that a scenario's run is judged by: the default of its body, if it has one.
///
/// # Errors
/// An unknown body.
pub fn build_task(scenario: &Scenario) -> Result<Option<Box<dyn Task>>> {
    scenario.body.task()
}

fn context<'a>(scenario: &'a Scenario, body: &'a BodySpec) -> BrainContext<'a> {
    BrainContext {
        body,
        settings: &scenario.body,
        seed: scenario.run.seed,
        clock: scenario.run.clock,
    }
}

/// Records the brain of a scenario for its body. Nothing is trained or compiled; of the files,
/// those of a twin and a genome are read.
///
/// # Errors
/// As [`BrainSpec::recipe`].
pub fn brain_recipe(scenario: &Scenario, body: &BodySpec) -> Result<Recipe> {
    scenario.brain.recipe(&context(scenario, body))
}

/// Makes the brain of a scenario for its plant, ready to tick on `device`; training happens here.
///
/// # Errors
/// As [`brain_recipe`] and [`Recipe::build`].
pub fn build_brain(
    scenario: &Scenario,
    plant: &dyn Body,
    device: &Device,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Brain>> {
    brain_recipe(scenario, plant.spec())?.build(device, watch)
}

/// Makes the stand-in of a scenario's loop, if it has one.
///
/// # Errors
/// As [`BrainSpec::stand_in`].
pub fn build_stand_in(scenario: &Scenario, plant: &dyn Body) -> Result<Option<Box<dyn StandIn>>> {
    let brain = scenario.run.stand_in.and_then(BrainSpec::named);
    brain
        .map(|brain| brain.stand_in(&context(scenario, plant.spec())))
        .transpose()
}

/// Describes the loop of a scenario to those who watch it.
///
/// # Errors
/// As [`build_body`], for the instance that is drawn.
pub fn show_loop(scenario: &Scenario, closed_loop: &mut ClosedLoop, live: &Live) -> Result<()> {
    let (body, brain) = (&scenario.body.name, scenario.brain.name());
    // A body of this crate draws itself; a second instance of a machine or a simulator is none.
    let is_built_in = body::BODIES.iter().any(|known| known.name == *body);
    let drawn = is_built_in.then(|| build_body(scenario)).transpose()?;
    closed_loop.show(live, drawn);
    let failed = |source| Error::data("receipt: cannot be encoded").with_source(source);
    live.set_about(About {
        title: format!("{}: {brain} on {body}", scenario.name),
        workload: json!({ "body": body, "brain": brain }),
        steps: Some(closed_loop.ticks()),
        receipt: serde_json::to_value(closed_loop.receipt()).map_err(failed)?,
        summary: None,
    });
    Ok(())
}

/// Puts the parts of a scenario together: body, brain, task and stand-in. Training happens here.
///
/// # Errors
/// As [`Recipe::build`], [`build_stand_in`] and [`ClosedLoop::new`].
pub fn build_loop(
    scenario: &Scenario,
    body: Box<dyn Body>,
    recipe: Recipe,
    device: &Device,
    watch: &mut Watch<'_>,
) -> Result<ClosedLoop> {
    let brain = recipe.build(device, watch)?;
    let stand_in = build_stand_in(scenario, body.as_ref())?;
    let mut closed_loop = ClosedLoop::new(body, brain, &scenario.run, device)?;
    closed_loop.set_task(build_task(scenario)?);
    scenario
        .body
        .input_files()
        .into_iter()
        .for_each(|file| closed_loop.add_input_file(file));
    Ok(stand_in
        .into_iter()
        .fold(closed_loop, ClosedLoop::with_stand_in))
}

/// Timed ticks of a trial; the same number of untimed ticks precedes them.
const TRIAL_TICKS: usize = 32;

/// The device that `auto` selects: the one with the minimum predicted time of a control tick; for a
/// brain whose work depends on its data, the one with the minimum time of a trial of some ticks;
/// the CPU for a brain of plain host arithmetic.
///
/// # Errors
/// As [`route::open`] and [`route::open_by_trial`].
pub fn open_device(scenario: &Scenario, recipe: &Recipe) -> Result<(Device, Option<Choice>)> {
    let Recipe::Device(recipe) = recipe else {
        return Ok((Device::open("cpu")?, None));
    };
    let (device, choice) = match recipe.tick_plan() {
        Some(tick) => route::open(&tick.work())?,
        None => route::open_by_trial(scenario.brain.name(), &mut |device| {
            trial(scenario, recipe.as_ref(), device)
        })?,
    };
    Ok((device, Some(choice)))
}

/// Runs the scenario's brain on its body, and returns the time of some ticks.
fn trial(scenario: &Scenario, recipe: &dyn DeviceRecipe, device: &Device) -> Result<Duration> {
    let mut plant = match scenario.body.is_remote() {
        true => scenario.body.model()?,
        false => build_body(scenario)?,
    };
    let mut brain = recipe.build(device, &mut WorkProgress::ignore)?;
    let (mut observation, mut action) = (
        vec![0.0; plant.spec().observation_len()],
        plant.spec().safe_action.clone(),
    );
    let mut start = Instant::now();
    for tick in 0..2 * TRIAL_TICKS {
        if tick == TRIAL_TICKS {
            start = Instant::now();
        }
        plant.observe(&mut observation);
        brain.tick(&observation, &mut action)?;
        plant.step(&action);
    }
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Software adapters are never chosen, so the trial on a device is tested separately.
    #[test]
    fn a_trial_of_a_field_runs_on_the_cpu_and_on_software_vulkan() {
        let mut scenario = Scenario::open("seeker").expect("built in");
        scenario.set_brain("field").expect("a brain");
        let recipe = |scenario: &Scenario| {
            brain_recipe(scenario, build_body(scenario).expect("known").spec()).expect("fits")
        };
        let Recipe::Device(field) = recipe(&scenario) else {
            panic!("a field has a device")
        };
        for id in ["cpu", "vulkan:0"] {
            match Device::open(id) {
                Ok(device) => assert!(
                    !trial(&scenario, field.as_ref(), &device)
                        .expect("a trial")
                        .is_zero(),
                    "{id}"
                ),
                Err(error) => println!("skipped: {error}"),
            }
        }
        let (device, choice) =
            open_device(&scenario, &recipe(&scenario)).expect("the CPU at least");
        assert!(
            !device.info().software
                && choice.is_some_and(|choice| choice.device == device.info().id)
        );
        scenario.set_brain("zero").expect("a brain");
        assert!(
            open_device(&scenario, &recipe(&scenario)).is_ok_and(|(device, choice)| device
                .info()
                .id
                == "cpu"
                && choice.is_none())
        );
    }
}
