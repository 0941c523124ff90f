//! A field on one device: a cycle is one plan; two plans alternate over the same buffers.

use tectum::{
    CodeObject, DType, Device, Executable, LaunchTime, Plan, PlanBuilder, PlanWork, Result,
    RunStats, View,
};

use super::layout::*;
use super::record::{Action, Evolution, FieldConfig, GlobalState};
use super::state::State;
use super::storage::Storage;

/// A field on one device.
pub struct Whole {
    storage: Storage,
    /// The plan from the first buffer to the second, and back, each with its views.
    cycles: [(Executable, Views); 2],
    work: PlanWork,
    code: Vec<CodeObject>,
}

/// The slots of a cycle's plan.
#[derive(Clone, Copy)]
struct Views {
    live: View,
    fields: [View; 2],
    sites: View,
    pull: View,
    mind: GlobalState,
    report: View,
}

impl Views {
    /// The slots that both plans share.
    fn states(&self) -> impl Iterator<Item = View> {
        self.fields
            .into_iter()
            .chain([self.sites, self.pull])
            .chain(self.mind.views())
    }
}

impl Whole {
    pub fn new(source: &FieldConfig<'_>, device: &Device) -> Result<Self> {
        let (there, views) = record(source, false)?;
        let work = there.work();
        let there = there.compile(device)?;
        let (back, back_views) = record(source, true)?;
        let buffers = views
            .states()
            .map(|view| there.state_buffer(view))
            .collect::<Result<Vec<_>>>()?;
        let shared: Vec<_> = back_views.states().zip(&buffers).collect();
        let back = back.compile_with(device, &shared)?;
        let code = Executable::code_of([&there, &back]);
        Ok(Self {
            storage: source.options.storage,
            cycles: [(there, views), (back, back_views)],
            work,
            code,
        })
    }

    /// Runs a cycle on the words that the host writes.
    pub fn tick(&mut self, cycle: u64, live: &[u32]) -> Result<RunStats> {
        let (run, views) = &mut self.cycles[(cycle % 2) as usize];
        run.input::<u32>(views.live).copy_from_slice(live);
        run.run()
    }

    /// The report of a cycle.
    pub fn report(&self, cycle: u64) -> &[f32] {
        let (run, views) = &self.cycles[(cycle % 2) as usize];
        run.output(views.report)
    }

    pub fn trace(&mut self, cycle: u64) -> Result<Vec<LaunchTime>> {
        self.cycles[(cycle % 2) as usize].0.trace()
    }

    pub fn work(&self) -> &PlanWork {
        &self.work
    }

    pub fn code(&self) -> &[CodeObject] {
        &self.code
    }

    /// The state before a cycle.
    pub fn state(&self, cycle: u64, seed: u64) -> Result<State> {
        let (run, views) = &self.cycles[0];
        let kept = |index: usize| {
            views
                .mind
                .library
                .map_or(Ok(Vec::new()), |library| run.read_state(library[index]))
        };
        Ok(State {
            cycle,
            seed,
            field: self.storage.read(run, views.fields[(cycle % 2) as usize])?,
            memory: run.read_state(views.mind.memory)?,
            sites: run.read_state(views.sites)?,
            descriptor: run.read_state(views.mind.descriptor)?,
            library: kept(0)?,
            traits: kept(1)?,
        })
    }

    pub fn set_state(&mut self, state: &State) -> Result<()> {
        let (run, views) = &mut self.cycles[0];
        self.storage
            .write(run, views.fields[(state.cycle % 2) as usize], &state.field)?;
        run.write_state(views.sites, &state.sites)?;
        write_global_state(run, &views.mind, state)
    }
}

/// Writes the state of a field in addition to its cells.
pub fn write_global_state(run: &mut Executable, mind: &GlobalState, state: &State) -> Result<()> {
    run.write_state(mind.memory, &state.memory)?;
    run.write_state(mind.descriptor, &state.descriptor)?;
    match mind.library {
        Some([library, traits]) => {
            run.write_state(library, &state.library)?;
            run.write_state(traits, &state.traits)
        }
        None => Ok(()),
    }
}

/// Records a cycle from one buffer of the field to the other.
fn record(source: &FieldConfig<'_>, is_back: bool) -> Result<(Plan, Views)> {
    let mut plan = PlanBuilder::new("field");
    let planes = 0..source.shape.cells()[0];
    let views = Views {
        live: plan.input("live", DType::U32, LIVE_WORDS),
        fields: ["field", "other field"].map(|name| {
            plan.state(
                name,
                source.options.storage.dtype(),
                source.plane_words(planes.len()),
            )
        }),
        sites: plan.state("sites", DType::F32, source.sites_len(planes.len())),
        pull: plan.state("pull", DType::F32, source.descriptor_len()),
        mind: GlobalState::states(&mut plan, source),
        report: plan.output("report", DType::F32, REPORT_WORDS),
    };
    let Views {
        live,
        sites,
        pull,
        report,
        mind,
        fields: [first, second],
    } = views;
    let control = plan.temp(DType::F32, CONTROL_WORDS);
    let rows = plan.temp(DType::F32, source.rows_len(planes.len()));
    let (old, new) = if is_back {
        (second, first)
    } else {
        (first, second)
    };
    source.sense(&mut plan, live, &mind, sites, Some(pull), control)?;
    source.evolve(
        &mut plan,
        &planes,
        &Evolution {
            live,
            control,
            pull,
            old,
            new,
            rows,
            sites,
        },
    )?;
    source.act(
        &mut plan,
        &Action {
            rows,
            live,
            control,
            sites,
            memory: mind.memory,
            descriptor: mind.descriptor,
            report,
        },
    )?;
    Ok((plan.finish()?, views))
}
