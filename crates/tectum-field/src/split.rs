//! A field split along X over devices: each has some planes and, on either side, a copy of the
//! adjacent plane.
//!
//! ```text
//! first device:  (similarity → recall →) sensors → sense → place → control ─┐                     ┌─ act → motors
//! every device:                        edges of the cycle before → evolve → pool → rows, sites, edges
//! ```
//!
//! A cycle is one transfer each way for every device's planes, with all devices working
//! concurrently, and two more each way for the first device. Two planes of every device are sent to
//! its neighbours through the host. The elements have the same bits as those of an unsplit field if
//! all devices are of the same kind.

use std::ops::Range;

use tectum::{
    Boundary, CodeObject, DType, Device, Error, Executable, PlanBuilder, PlanWork, Result,
    RunStats, Stream, View,
};

use super::layout::*;
use super::record::{Action, Evolution, FieldConfig, GlobalState};
use super::state::State;
use super::storage::Storage;
use super::whole::write_global_state;

/// A field on several devices.
pub struct Split {
    storage: Storage,
    planes: usize,
    sense: Executable,
    act: Executable,
    views: Views,
    slabs: Vec<Slab>,
    /// The words of the first and the last plane of each slab.
    edges: Vec<[Vec<u32>; 2]>,
    /// Mean content of all sites.
    sites: Vec<f32>,
    work: PlanWork,
    code: Vec<CodeObject>,
}

/// The slots of the first device's plans.
struct Views {
    sense_live: View,
    sense_sites: View,
    control_output: View,
    pull_output: Option<View>,
    mind: GlobalState,
    act_live: View,
    act_control: View,
    act_rows: View,
    act_sites: View,
    report: View,
}

/// The planes of a device.
struct Slab {
    planes: Range<usize>,
    /// The slab, and the side of it, whose plane is the neighbour before and after; none for zeros.
    neighbours: [Option<(usize, usize)>; 2],
    /// The plan from the first buffer to the second, and back; none while it runs.
    cycles: [Option<Executable>; 2],
    /// The views of each plan.
    views: [SlabViews; 2],
    /// Runs it concurrently with the others.
    stream: Stream,
}

#[derive(Clone, Copy)]
struct SlabViews {
    live: View,
    control: View,
    pull: View,
    /// The words of the planes before the first and after the last.
    outside: [View; 2],
    fields: [View; 2],
    rows: View,
    sites: View,
    edges: [View; 2],
}

impl Split {
    /// Splits a field by sites along X over two or more devices, which may repeat.
    ///
    /// # Errors
    /// `Invalid` for more devices than sites along X; errors of compiling a plan.
    pub fn new(source: &FieldConfig<'_>, devices: &[Device]) -> Result<Self> {
        let (sites, block) = (source.shape.sites()[0], source.shape.block());
        if devices.len() > sites {
            return Err(Error::invalid(format!(
                "field: {} devices for {sites} sites along X",
                devices.len()
            )));
        }
        let bound = |index: usize| index * sites / devices.len() * block;
        let parts: Vec<Range<usize>> = (0..devices.len())
            .map(|index| bound(index)..bound(index + 1))
            .collect();
        let slabs = parts.iter().zip(devices).map(|(planes, device)| {
            let neighbours = [planes.start as isize - 1, planes.end as isize]
                .map(|plane| neighbour_plane(&parts, plane, source.options.boundary));
            Slab::new(source, planes.clone(), neighbours, device)
        });
        let (slabs, works): (Vec<_>, Vec<_>) =
            slabs.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let (sense, act, views, [before, after]) = first_device(source, &devices[0])?;
        let mut work = before;
        works
            .into_iter()
            .chain([after])
            .for_each(|part| add_work(&mut work, part));
        let of_slabs = slabs.iter().flat_map(|slab| slab.cycles.iter().flatten());
        let code = Executable::code_of(of_slabs.chain([&sense, &act]));
        let planes = source.shape.cells()[0];
        let sites = vec![0.0; source.sites_len(planes)];
        let edges = slabs
            .iter()
            .map(|_| [0, 1].map(|_| vec![0; source.plane_words(1)]))
            .collect();
        Ok(Self {
            storage: source.options.storage,
            planes,
            sense,
            act,
            views,
            slabs,
            edges,
            sites,
            work,
            code,
        })
    }

    /// Runs a cycle on the words that the host writes.
    pub fn tick(&mut self, cycle: u64, live: &[u32]) -> Result<RunStats> {
        let views = &self.views;
        self.sense
            .input::<u32>(views.sense_live)
            .copy_from_slice(live);
        self.sense
            .input::<f32>(views.sense_sites)
            .copy_from_slice(&self.sites);
        let mut stats = self.sense.run()?;
        let control = self.sense.output::<f32>(views.control_output);
        let pull = views.pull_output.map(|view| self.sense.output::<f32>(view));

        let mut runs = Vec::with_capacity(self.slabs.len());
        for slab in &mut self.slabs {
            slab.fill(cycle, live, control, pull, &self.edges)?;
            let run = slab.cycles[(cycle % 2) as usize]
                .take()
                .ok_or_else(lost_run_error)?;
            runs.push(slab.stream.submit(run));
        }
        // Waits for all, so that an error of one does not lose another.
        let results: Vec<_> = runs.into_iter().map(tectum::Submission::wait).collect();
        let (mut rows_at, mut sites_at) = (0, 0);
        let mut failed = None;
        for ((slab, edges), (run, result)) in
            self.slabs.iter_mut().zip(&mut self.edges).zip(results)
        {
            match result {
                Ok(part) => {
                    stats.add(&part);
                    let views_of_slab = slab.views[(cycle % 2) as usize];
                    let (rows, sites) = (
                        run.output::<f32>(views_of_slab.rows),
                        run.output::<f32>(views_of_slab.sites),
                    );
                    self.act.input::<f32>(views.act_rows)[rows_at..][..rows.len()]
                        .copy_from_slice(rows);
                    self.sites[sites_at..][..sites.len()].copy_from_slice(sites);
                    (rows_at, sites_at) = (rows_at + rows.len(), sites_at + sites.len());
                    edges
                        .iter_mut()
                        .zip(views_of_slab.edges)
                        .for_each(|(edge, view)| edge.copy_from_slice(run.output(view)));
                }
                Err(error) => failed = failed.or(Some(error)),
            }
            slab.cycles[(cycle % 2) as usize] = Some(run);
        }
        if let Some(error) = failed {
            return Err(error);
        }

        self.act.input::<u32>(views.act_live).copy_from_slice(live);
        self.act
            .input::<f32>(views.act_control)
            .copy_from_slice(control);
        self.act
            .input::<f32>(views.act_sites)
            .copy_from_slice(&self.sites);
        stats.add(&self.act.run()?);
        Ok(stats)
    }

    /// The report of a cycle.
    pub fn report(&self) -> &[f32] {
        self.act.output(self.views.report)
    }

    pub fn work(&self) -> &PlanWork {
        &self.work
    }

    pub fn code(&self) -> &[CodeObject] {
        &self.code
    }

    /// The state before a cycle.
    pub fn state(&self, cycle: u64, seed: u64) -> Result<State> {
        let mut field = Vec::new();
        for slab in &self.slabs {
            let run = slab.cycles[0].as_ref().ok_or_else(lost_run_error)?;
            field.extend(self.storage.read(run, slab.own(cycle))?);
        }
        let mind = &self.views.mind;
        let kept = |index: usize| {
            mind.library.map_or(Ok(Vec::new()), |library| {
                self.sense.read_state(library[index])
            })
        };
        Ok(State {
            cycle,
            seed,
            field,
            memory: self.sense.read_state(mind.memory)?,
            sites: self.sites.clone(),
            descriptor: self.sense.read_state(mind.descriptor)?,
            library: kept(0)?,
            traits: kept(1)?,
        })
    }

    pub fn set_state(&mut self, state: &State) -> Result<()> {
        let plane = state.field.len() / self.planes;
        for (slab, edges) in self.slabs.iter_mut().zip(&mut self.edges) {
            let own = slab.own(state.cycle);
            let elements = &state.field[slab.planes.start * plane..slab.planes.end * plane];
            self.storage.write(
                slab.cycles[0].as_mut().ok_or_else(lost_run_error)?,
                own,
                elements,
            )?;
            edges[0] = self.storage.pack(&elements[..plane]);
            edges[1] = self.storage.pack(&elements[elements.len() - plane..]);
        }
        self.sites.copy_from_slice(&state.sites);
        write_global_state(&mut self.sense, &self.views.mind, state)
    }
}

/// The message for a lost run.
fn lost_run_error() -> Error {
    Error::device_lost("field: a run of one of its devices was lost")
}

impl Slab {
    fn new(
        source: &FieldConfig<'_>,
        planes: Range<usize>,
        neighbours: [Option<(usize, usize)>; 2],
        device: &Device,
    ) -> Result<(Self, PlanWork)> {
        let (there, views) = record(source, &planes, false)?;
        let work = there.work();
        let there = there.compile(device)?;
        let buffers = views
            .fields
            .into_iter()
            .map(|view| there.state_buffer(view))
            .collect::<Result<Vec<_>>>()?;
        let (back, back_views) = record(source, &planes, true)?;
        let shared: Vec<_> = back_views.fields.into_iter().zip(&buffers).collect();
        let back = back.compile_with(device, &shared)?;
        Ok((
            Self {
                planes,
                neighbours,
                cycles: [Some(there), Some(back)],
                views: [views, back_views],
                stream: Stream::new()?,
            },
            work,
        ))
    }

    /// Its planes in the buffer that a cycle reads, as a view of the first plan.
    fn own(&self, cycle: u64) -> View {
        let view = self.views[0].fields[(cycle % 2) as usize];
        let plane = view.len() / (self.planes.len() + 2);
        view.part(plane..view.len() - plane)
    }

    fn fill(
        &mut self,
        cycle: u64,
        live: &[u32],
        control: &[f32],
        pull: Option<&[f32]>,
        edges: &[[Vec<u32>; 2]],
    ) -> Result<()> {
        let views = self.views[(cycle % 2) as usize];
        let run = self.cycles[(cycle % 2) as usize]
            .as_mut()
            .ok_or_else(lost_run_error)?;
        run.input::<u32>(views.live).copy_from_slice(live);
        run.input::<f32>(views.control).copy_from_slice(control);
        match pull {
            Some(pull) => run.input::<f32>(views.pull).copy_from_slice(pull),
            None => run.input::<f32>(views.pull).fill(0.0),
        }
        for (view, neighbours) in views.outside.into_iter().zip(self.neighbours) {
            match neighbours {
                Some((slab, side)) => run.input::<u32>(view).copy_from_slice(&edges[slab][side]),
                None => run.input::<u32>(view).fill(0),
            }
        }
        Ok(())
    }
}

/// The slab, and the side of it, whose plane is used for `plane`, which is at most one outside the
/// field; none for zeros.
fn neighbour_plane(
    parts: &[Range<usize>],
    plane: isize,
    boundary: Boundary,
) -> Option<(usize, usize)> {
    let plane = boundary.place(plane, parts.last()?.end)?;
    let owner = parts.iter().position(|part| part.contains(&plane))?;
    Some((owner, usize::from(plane != parts[owner].start)))
}

/// Records the step of some planes from one buffer to the other.
fn record(
    source: &FieldConfig<'_>,
    planes: &Range<usize>,
    is_back: bool,
) -> Result<(tectum::Plan, SlabViews)> {
    let mut plan = PlanBuilder::new("field slab");
    let plane = source.plane_words(1);
    let held = source.plane_words(planes.len() + 2);
    let views = SlabViews {
        live: plan.input("live", DType::U32, LIVE_WORDS),
        control: plan.input("control", DType::F32, CONTROL_WORDS),
        pull: plan.input("pull", DType::F32, source.descriptor_len()),
        outside: ["before", "after"].map(|name| plan.input(name, DType::U32, plane)),
        fields: ["field", "other field"]
            .map(|name| plan.state(name, source.options.storage.dtype(), held)),
        rows: plan.output("rows", DType::F32, source.rows_len(planes.len())),
        sites: plan.output("sites", DType::F32, source.sites_len(planes.len())),
        edges: ["first plane", "last plane"].map(|name| plan.output(name, DType::U32, plane)),
    };
    let SlabViews {
        live,
        control,
        pull,
        rows,
        sites,
        fields: [first, second],
        ..
    } = views;
    let (old, new) = if is_back {
        (second, first)
    } else {
        (first, second)
    };
    plan.copy(views.outside[0], old.part(0..plane))?;
    plan.copy(views.outside[1], old.part(held - plane..held))?;
    source.evolve(
        &mut plan,
        planes,
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
    plan.copy(new.part(plane..2 * plane), views.edges[0])?;
    plan.copy(new.part(held - 2 * plane..held - plane), views.edges[1])?;
    Ok((plan.finish()?, views))
}

/// The plans before and after the step, on one device over the same states.
fn first_device(
    source: &FieldConfig<'_>,
    device: &Device,
) -> Result<(Executable, Executable, Views, [PlanWork; 2])> {
    let planes = source.shape.cells()[0];
    let mut plan = PlanBuilder::new("field sense");
    let sense_live = plan.input("live", DType::U32, LIVE_WORDS);
    let sense_sites = plan.input("sites", DType::F32, source.sites_len(planes));
    let mind = GlobalState::states(&mut plan, source);
    let control_output = plan.output("control", DType::F32, CONTROL_WORDS);
    let pull_output = mind
        .library
        .map(|_| plan.output("pull", DType::F32, source.descriptor_len()));
    source.sense(
        &mut plan,
        sense_live,
        &mind,
        sense_sites,
        pull_output,
        control_output,
    )?;
    let sense = plan.finish()?;

    let mut plan = PlanBuilder::new("field act");
    let act_live = plan.input("live", DType::U32, LIVE_WORDS);
    let act_control = plan.input("control", DType::F32, CONTROL_WORDS);
    let act_rows = plan.input("rows", DType::F32, source.rows_len(planes));
    let act_sites = plan.input("sites", DType::F32, source.sites_len(planes));
    let [memory, descriptor] = [
        ("memory", MEMORY_WORDS),
        ("descriptor", source.descriptor_len()),
    ]
    .map(|(name, len)| plan.state(name, DType::F32, len));
    let report = plan.output("report", DType::F32, REPORT_WORDS);
    source.act(
        &mut plan,
        &Action {
            rows: act_rows,
            live: act_live,
            control: act_control,
            sites: act_sites,
            memory,
            descriptor,
            report,
        },
    )?;
    let act = plan.finish()?;

    let work = [sense.work(), act.work()];
    let sense = sense.compile(device)?;
    let shared = [
        (memory, sense.state_buffer(mind.memory)?),
        (descriptor, sense.state_buffer(mind.descriptor)?),
    ];
    let act = act.compile_with(
        device,
        &shared.each_ref().map(|(view, buffer)| (*view, buffer)),
    )?;
    let views = Views {
        sense_live,
        sense_sites,
        control_output,
        pull_output,
        mind,
        act_live,
        act_control,
        act_rows,
        act_sites,
        report,
    };
    Ok((sense, act, views, work))
}

/// Adds the work of another plan of the cycle.
fn add_work(work: &mut PlanWork, part: PlanWork) {
    work.launches.extend(part.launches);
    work.bytes_up += part.bytes_up;
    work.bytes_down += part.bytes_down;
    work.memory_bytes += part.memory_bytes;
    work.longest_binding_bytes = work.longest_binding_bytes.max(part.longest_binding_bytes);
    part.dtypes.into_iter().for_each(|dtype| {
        if !work.dtypes.contains(&dtype) {
            work.dtypes.push(dtype)
        }
    });
}
