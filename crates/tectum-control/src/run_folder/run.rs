//! A scenario from its text to its run folder.

use std::ops::ControlFlow;
use std::path::Path;

use tectum::{Device, Result};

use super::{RunFolder, RunSummary};
use crate::closed_loop::{Progress, run_with_sink_thread};
use crate::scenario::Scenario;
use crate::scenario::build::{brain_recipe, build_body, build_loop};

/// Runs a scenario under its clock until its end, or until `watch` breaks, and writes its folder
/// into `runs`; the summary names the folder, the outcome and the error that ended the run, if one
/// did. What a run consists of is in [`ClosedLoop`](crate::closed_loop::ClosedLoop).
///
/// # Errors
/// Before the first tick: as [`build_loop`] and [`RunFolder::create`]; `Unsupported` for a priority
/// that the operating system does not grant. After it: `Io` naming the path.
/// # Example
/// ```
/// use std::ops::ControlFlow;
/// use tectum_control::{run_folder, scenario::Scenario};
/// let text = "[body]\nname = \"pendulum\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 10\nclock = \"sim\"\n";
/// let scenario = Scenario::parse(text, "swing.toml", "swing")?;
/// let runs = std::env::temp_dir().join(format!("tectum-run-{}", std::process::id()));
/// let summary = run_folder::run(&scenario, &runs, &tectum::Device::open("cpu")?, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!((summary.ticks, summary.brain.as_str()), (200, "lqr"));
/// # std::fs::remove_dir_all(&runs).map_err(|error| tectum::Error::io(runs.display(), error))?;
/// # Ok::<(), tectum::Error>(())
/// ```
pub fn run(
    scenario: &Scenario,
    runs: &Path,
    device: &Device,
    watch: &mut (dyn FnMut(&Progress) -> ControlFlow<()> + Send),
) -> Result<RunSummary> {
    let body = build_body(scenario)?;
    let recipe = brain_recipe(scenario, body.spec())?;
    let mut closed_loop = build_loop(
        scenario,
        body,
        recipe,
        device,
        &mut tectum::WorkProgress::ignore,
    )?;
    let mut folder = RunFolder::create(runs, scenario, &mut closed_loop)?;
    let spec = closed_loop.body_spec().clone();
    let (outcome, granted) = run_with_sink_thread(&mut folder, &spec, |sink| {
        scenario.run.real_time.run(|| {
            closed_loop.run(scenario.run.clock.start().as_mut(), sink, &mut |progress| {
                watch(progress)
            })
        })
    })??;
    let summary = RunSummary::new(scenario, &outcome, granted, 0, folder.complete_path());
    folder.write(&outcome, &summary)?;
    folder.complete()?;
    Ok(summary)
}
