//! Builders, plans and executables: slots of every role, views, recorded operations, compiling,
//! running.

use std::rc::Rc;

use tectum::{Access, DType, ErrorKind, Executable, Plan, PlanBuilder, Session, SharedState, View};

use super::buffers::{Held, Wrap};
use super::memory::{Memory, Seen, Space, Word, compare, zeros};
use super::operation::{Bound, Operation, Step, product};
use super::world::{LIVE_BYTES, Verdict, World, judged};
use super::{caches, conditions, moves, numbers, panels, products, windows};

/// Maximum bytes of a slot, and of all slots of a plan together.
const MAX_BYTES: u128 = isize::MAX as u128;

/// The role of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Input,
    Output,
    State,
    Constant,
    Temp,
}

#[derive(Debug, Clone)]
pub struct Slot {
    pub kind: Kind,
    pub dtype: DType,
    pub len: usize,
    /// Whether a launch wrote some of it.
    pub written: bool,
    /// A constant's words.
    pub data: Vec<u32>,
}

impl Slot {
    fn bytes(&self) -> u128 {
        product(&[self.len, self.dtype.bytes()])
    }
}

/// The parts of a plan.
#[derive(Default)]
pub struct PlanModel {
    pub id: u64,
    pub slots: Vec<Slot>,
    pub steps: Vec<Step>,
    pub views: Vec<Seen>,
    /// Whether some launch uses f64.
    pub is_wide: bool,
}

pub struct Building {
    pub builder: PlanBuilder,
    pub model: PlanModel,
}

pub struct Planned {
    pub plan: Plan,
    pub model: Rc<PlanModel>,
}

pub struct Running {
    pub run: Executable,
    pub model: Rc<PlanModel>,
    /// For each slot.
    pub memories: Vec<Memory>,
    /// For each output slot, the words that the last run downloaded.
    pub downloads: Vec<Vec<Word>>,
    pub device: usize,
    pub ran: bool,
    /// Whether an input was filled after the last run.
    pub dirty: bool,
}

impl PlanModel {
    pub fn is_readable(&self, seen: &Seen) -> bool {
        let slot = &self.slots[seen.slot];
        slot.written || !matches!(slot.kind, Kind::Output | Kind::Temp)
    }

    pub fn is_writable(&self, seen: &Seen) -> bool {
        !matches!(self.slots[seen.slot].kind, Kind::Input | Kind::Constant)
    }

    /// Whether a launch must be refused.
    fn refuses(&self, launch: &[Bound], written: &[usize]) -> bool {
        let bad = |bound: &Bound| {
            let Bound {
                seen,
                needs,
                access,
            } = *bound;
            seen.plan != self.id
                || self.slots[seen.slot].bytes() > MAX_BYTES
                || seen.dtype != needs
                || seen.len == 0
                || seen.len > u32::MAX as usize
                || seen.offset % 64 != 0
                || (access.writes() && !self.is_writable(&seen))
                || (access != Access::Write
                    && !self.is_readable(&seen)
                    && !written.contains(&seen.slot))
        };
        launch.iter().any(bad)
            || launch
                .iter()
                .enumerate()
                .any(|(place, a)| launch[place + 1..].iter().any(|b| clash(a, b)))
    }

    fn wanted(&self, operation: &Operation) -> Option<ErrorKind> {
        let mut written = Vec::new();
        for launch in &operation.launches {
            if self.refuses(launch, &written) {
                return operation.refused.or(Some(ErrorKind::Invalid));
            }
            written.extend(
                launch
                    .iter()
                    .filter(|bound| bound.access.writes())
                    .map(|bound| bound.seen.slot),
            );
        }
        operation.refused
    }

    fn take(&mut self, operation: Operation) {
        for bound in operation.launches.iter().flatten() {
            self.slots[bound.seen.slot].written |= bound.access.writes();
            self.is_wide |= bound.needs == DType::F64;
        }
        if !operation.launches.is_empty() {
            self.steps.push(operation.step);
        }
    }

    fn bytes(&self) -> u128 {
        self.slots
            .iter()
            .map(Slot::bytes)
            .fold(0, u128::saturating_add)
    }
}

/// Whether two bindings of one launch touch the same slot and one writes it.
fn clash(a: &Bound, b: &Bound) -> bool {
    let (a_words, b_words) = (a.seen.words(), b.seen.words());
    let overlap = a_words.start < b_words.end && b_words.start < a_words.end;
    let (a_writes, b_writes) = (a.access.writes(), b.access.writes());
    a.seen.slot == b.seen.slot && (a_writes || b_writes) && (a_writes != b_writes || overlap)
}

impl World {
    pub fn begin_plan(&mut self) {
        self.next_plan += 1;
        let id = self.next_plan;
        self.note(format!("plan{id} = PlanBuilder::new"));
        let builder = PlanBuilder::new(format!("plan{id}"));
        self.builders.push(Building {
            builder,
            model: PlanModel {
                id,
                ..PlanModel::default()
            },
        });
    }

    /// A new slot as a whole.
    pub fn fresh(&mut self, plan: usize, kind: Kind, dtype: DType, len: usize) -> Seen {
        if kind == Kind::Constant {
            let data = self.data(dtype, len);
            return self.constant(plan, dtype, data);
        }
        let Building { builder, model } = &mut self.builders[plan];
        let name = format!("s{}", model.slots.len());
        let view = match kind {
            Kind::Input => builder.input(name, dtype, len),
            Kind::Output => builder.output(name, dtype, len),
            Kind::State => builder.state(name, dtype, len),
            _ => builder.temp(dtype, len),
        };
        self.added(
            plan,
            view,
            Slot {
                kind,
                dtype,
                len,
                written: false,
                data: Vec::new(),
            },
        )
    }

    pub fn constant(&mut self, plan: usize, dtype: DType, data: Vec<u32>) -> Seen {
        let builder = &mut self.builders[plan].builder;
        let view = match dtype {
            DType::F32 => builder.constant::<f32>("c", bytemuck::cast_slice(&data)),
            DType::U32 => builder.constant::<u32>("c", &data),
            DType::I32 => builder.constant::<i32>("c", bytemuck::cast_slice(&data)),
            DType::F64 => {
                builder.constant::<f64>("c", &bytemuck::pod_collect_to_vec::<u32, f64>(&data))
            }
        };
        let len = data.len() * 4 / dtype.bytes();
        self.added(
            plan,
            view,
            Slot {
                kind: Kind::Constant,
                dtype,
                len,
                written: false,
                data,
            },
        )
    }

    fn added(&mut self, plan: usize, view: View, slot: Slot) -> Seen {
        let model = &mut self.builders[plan].model;
        let seen = Seen {
            view,
            plan: model.id,
            slot: model.slots.len(),
            offset: 0,
            len: slot.len,
            dtype: slot.dtype,
        };
        let text = format!(
            "{seen} = {:?} {:?} {}",
            slot.kind,
            slot.dtype,
            if slot.data.is_empty() {
                String::new()
            } else {
                format!("{:x?}", slot.data)
            }
        );
        model.slots.push(slot);
        model.views.push(seen);
        self.note(text);
        self.remember(seen);
        seen
    }

    /// A slot of an extreme size: accepted as a slot, refused by its users or by the memory.
    pub fn extreme_slot(&mut self, plan: usize) {
        let (kind, dtype, len) = (
            self.random
                .pick(&[Kind::Input, Kind::Output, Kind::State, Kind::Temp]),
            self.dtype(),
            self.extreme(),
        );
        self.fresh(plan, kind, dtype, len);
    }

    /// A view derived from another: a part, joined ones, another type.
    pub fn derive_view(&mut self, plan: usize) -> Verdict {
        let Some(seen) = self.own_view(plan) else {
            return Ok(());
        };
        match self.random.below(3) {
            0 => {
                let first = if self.chance(10) {
                    self.extreme()
                } else {
                    64 * self.below(4)
                };
                let len = if self.chance(10) {
                    self.extreme()
                } else {
                    self.below(seen.len.saturating_sub(first).min(1 << 20) + 1)
                };
                self.part(plan, seen, first, len)
            }
            1 => self.join(plan, seen),
            _ => self.reinterpret(plan, seen),
        }
    }

    fn own_view(&mut self, plan: usize) -> Option<Seen> {
        let count = self.builders[plan].model.views.len();
        let place = self.below(count);
        self.builders[plan].model.views.get(place).copied()
    }

    fn part(&mut self, plan: usize, seen: Seen, first: usize, len: usize) -> Verdict {
        let end = first.wrapping_add(len);
        let text = format!("part {seen} {first}..{end}");
        if first > end || end > seen.len {
            return self.must_panic(text, "part", || seen.view.part(first..end));
        }
        let view = self.call(text, || seen.view.part(first..end))?;
        self.derived(
            plan,
            Seen {
                view,
                offset: seen.offset + first,
                len,
                ..seen
            },
        )
    }

    fn join(&mut self, plan: usize, seen: Seen) -> Verdict {
        let model = &self.builders[plan].model;
        let after = model
            .views
            .iter()
            .find(|next| {
                next.slot == seen.slot
                    && next.dtype == seen.dtype
                    && next.offset == seen.offset + seen.len
            })
            .copied();
        let next = match after {
            Some(next) if !self.chance(4) => next,
            _ if !self.strangers.is_empty() => {
                let place = self.below(self.strangers.len());
                self.strangers[place]
            }
            _ => return Ok(()),
        };
        let fits = next.plan == seen.plan
            && next.slot == seen.slot
            && next.dtype == seen.dtype
            && Some(next.offset) == seen.offset.checked_add(seen.len);
        match (
            self.call(format_args!("join {seen} {next}"), || {
                seen.view.joined(next.view)
            })?,
            fits,
        ) {
            (Some(view), true) => self.derived(
                plan,
                Seen {
                    view,
                    len: seen.len + next.len,
                    ..seen
                },
            ),
            (None, false) => Ok(()),
            (joined, _) => Err(format!("gave {joined:?}")),
        }
    }

    fn reinterpret(&mut self, plan: usize, seen: Seen) -> Verdict {
        let dtype = self.dtype();
        let text = format!("reinterpret {seen} {dtype:?}");
        let scaled =
            |count: usize| count as u128 * seen.dtype.bytes() as u128 / dtype.bytes() as u128;
        let is_whole = |count: usize| {
            (count as u128 * seen.dtype.bytes() as u128).is_multiple_of(dtype.bytes() as u128)
        };
        if !is_whole(seen.offset) || !is_whole(seen.len) {
            return self.must_panic(text, "seen as", || seen.view.reinterpret(dtype));
        }
        let view = self.call(text, || seen.view.reinterpret(dtype))?;
        let [offset, len] = [seen.offset, seen.len].map(scaled);
        // A slot beyond the address range has a saturated element count.
        match (usize::try_from(offset), usize::try_from(len)) {
            (Ok(offset), Ok(len)) => self.derived(
                plan,
                Seen {
                    view,
                    offset,
                    len,
                    dtype,
                    ..seen
                },
            ),
            _ => Ok(()),
        }
    }

    fn derived(&mut self, plan: usize, seen: Seen) -> Verdict {
        if (seen.view.len(), seen.view.dtype(), seen.view.is_empty())
            != (seen.len, seen.dtype, seen.len == 0)
        {
            return Err(format!("gave {:?} for {seen}", seen.view));
        }
        self.builders[plan].model.views.push(seen);
        self.remember(seen);
        Ok(())
    }

    /// Records a drawn operation.
    pub fn record(&mut self, plan: usize) -> Verdict {
        let operation = match self.random.below(28) {
            0..7 => moves::draw(self, plan),
            7..16 => numbers::draw(self, plan),
            16..22 => products::draw(self, plan),
            22 if self.chance(3) => super::recorded::draw(self, plan),
            22 => panels::draw(self, plan),
            23 | 24 => conditions::draw(self, plan),
            25 | 26 => windows::draw(self, plan),
            _ => caches::draw(self, plan),
        };
        self.recorded(plan, operation)
    }

    pub fn recorded(&mut self, plan: usize, mut operation: Operation) -> Verdict {
        let record = std::mem::replace(&mut operation.record, Box::new(|_| Ok(())));
        let wanted = self.builders[plan].model.wanted(&operation);
        self.note(format!(
            "plan{}: {}",
            self.builders[plan].model.id, operation.text
        ));
        let builder = &mut self.builders[plan].builder;
        let result = super::world::caught(|| record(builder))
            .map_err(|panic| format!("panicked: {panic}"))?;
        let model = &mut self.builders[plan].model;
        // A foreign and empty view may be refused as foreign or accepted as empty.
        let is_open = operation.given.iter().any(|seen| seen.plan != model.id) && wanted.is_none();
        match result {
            Err(error) if is_open && error.kind() == ErrorKind::Invalid => Ok(()),
            result => {
                if judged(result, wanted)?.is_some() {
                    model.take(operation);
                }
                Ok(())
            }
        }
    }

    /// Finishes a plan; most outputs without a write are filled before.
    pub fn finish(&mut self, plan: usize) -> Verdict {
        if !self.chance(12) {
            let model = &self.builders[plan].model;
            let left: Vec<usize> = (0..model.slots.len())
                .filter(|&slot| {
                    model.slots[slot].kind == Kind::Output && !model.slots[slot].written
                })
                .collect();
            for slot in left {
                let seen = self.builders[plan]
                    .model
                    .views
                    .iter()
                    .copied()
                    .find(|seen| seen.slot == slot && seen.len > 0 && seen.offset == 0);
                if let Some(seen) = seen {
                    self.recorded(plan, moves::fill_all(seen))?;
                }
            }
        }
        let Building { builder, model } = self.builders.swap_remove(plan);
        let unwritten = model
            .slots
            .iter()
            .any(|slot| slot.kind == Kind::Output && slot.len > 0 && !slot.written);
        let wanted = (unwritten || model.bytes() > MAX_BYTES).then_some(ErrorKind::Invalid);
        let id = model.id;
        let Some(plan) = self.expect(format_args!("plan{id}: finish"), wanted, || {
            builder.finish()
        })?
        else {
            return Ok(());
        };
        let look = || {
            (
                plan.describe(),
                plan.kernels().count(),
                plan.temp_bytes(),
                plan.work(),
            )
        };
        let (.., work) = self.call(
            format_args!("plan{id}: describe, kernels, temp_bytes, work, name"),
            look,
        )?;
        if plan.name() != format!("plan{id}")
            || work.plan != plan.name()
            || work.launches.is_empty() != (plan.kernels().count() == 0)
        {
            return Err(format!("{} says of its work {work:?}", plan.name()));
        }
        let model = Rc::new(model);
        if self.plans.len() == 4 {
            let place = self.below(4);
            self.plans.swap_remove(place);
        }
        self.plans.push(Planned { plan, model });
        self.compile(self.plans.len() - 1)
    }

    /// Compiles a plan, occasionally with states in buffers shared with others.
    pub fn compile(&mut self, plan: usize) -> Verdict {
        let device = usize::from(self.chance(12));
        let model = self.plans[plan].model.clone();
        let shared = self.shared_states(&model);
        let lacks_wide = model.is_wide && !self.devices[device].info().dtypes.contains(&DType::F64);
        let wanted = match () {
            () if lacks_wide => Some(ErrorKind::Unsupported),
            () if !self.is_shareable(&model, device, &shared) => Some(ErrorKind::Invalid),
            () if model.bytes() > u128::from(LIVE_BYTES) && !self.is_temp_only(&model) => {
                Some(ErrorKind::OutOfMemory)
            }
            () => None,
        };
        let text = {
            let states: Vec<String> = shared
                .iter()
                .map(|(seen, buffer)| format!("{seen} in buffer{}", self.buffers[*buffer].id))
                .collect();
            format!(
                "plan{}: compile on {:?} with {states:?}",
                model.id, self.devices[device]
            )
        };
        self.note(text);
        let pairs: Vec<(View, &SharedState)> = shared
            .iter()
            .map(|(seen, buffer)| (seen.view, self.buffers[*buffer].state()))
            .collect();
        let (target, source) = (&self.devices[device], &self.plans[plan].plan);
        let result = super::world::caught(|| source.compile_with(target, &pairs))
            .map_err(|panic| format!("panicked: {panic}"))?;
        if model.bytes() > u128::from(LIVE_BYTES) / 4
            && matches!(&result, Err(error) if error.kind() == ErrorKind::OutOfMemory)
        {
            return Ok(());
        }
        // If a slot exceeds the size of a binding, a launch may bind all or a part of it.
        let longest = u128::from(target.info().limits.max_binding_bytes);
        let is_long = model.slots.iter().any(|slot| slot.bytes() > longest);
        if is_long
            && matches!(&result, Err(error) if error.kind() == ErrorKind::Unsupported && error.to_string().contains("this device binds at most"))
        {
            return Ok(());
        }
        let Some(run) = judged(result, wanted)? else {
            return Ok(());
        };
        let memories = memories(&model, |slot| {
            shared
                .iter()
                .find(|(seen, _)| seen.slot == slot)
                .map(|(_, buffer)| self.buffers[*buffer].memory.clone())
        });
        let downloads = model.slots.iter().map(|_| Vec::new()).collect();
        if self.runs.len() == 6 {
            let place = self.below(6);
            self.runs.swap_remove(place);
        }
        self.runs.push(Running {
            run,
            model,
            memories,
            downloads,
            device,
            ran: false,
            dirty: false,
        });
        self.use_run(self.runs.len() - 1)
    }

    /// Whether only temporaries exceed the memory: those may share it, or never be used.
    fn is_temp_only(&self, model: &PlanModel) -> bool {
        let others = model
            .slots
            .iter()
            .filter(|slot| slot.kind != Kind::Temp)
            .map(Slot::bytes);
        others.fold(0, u128::saturating_add) <= u128::from(LIVE_BYTES)
    }

    /// States and the buffers that they must use.
    fn shared_states(&mut self, model: &PlanModel) -> Vec<(Seen, usize)> {
        let mut shared = Vec::new();
        if self.buffers.is_empty() || !self.chance(3) {
            return shared;
        }
        for _ in 0..1 + self.below(2) {
            // Some views have another type than their slot, some buffers another type than the
            // view.
            let is_typed = !self.chance(8);
            let fits = |seen: &Seen, held: &Held| {
                (held.dtype == seen.dtype || !is_typed)
                    && held.len == seen.len
                    && model.slots[seen.slot].kind == Kind::State
            };
            let pairs: Vec<(Seen, usize)> = model
                .views
                .iter()
                .flat_map(|seen| {
                    self.buffers
                        .iter()
                        .enumerate()
                        .filter(|(_, held)| fits(seen, held))
                        .map(|(place, _)| (*seen, place))
                        .collect::<Vec<_>>()
                })
                .collect();
            if !pairs.is_empty() && !self.chance(6) {
                let place = self.below(pairs.len());
                shared.push(pairs[place]);
            } else if !self.strangers.is_empty() && self.chance(3) {
                let (view, buffer) = (
                    self.below(self.strangers.len()),
                    self.below(self.buffers.len()),
                );
                shared.push((self.strangers[view], buffer));
            }
        }
        shared
    }

    fn is_shareable(&self, model: &PlanModel, device: usize, shared: &[(Seen, usize)]) -> bool {
        shared.iter().enumerate().all(|(place, (seen, buffer))| {
            let held = &self.buffers[*buffer];
            let own = |seen: &Seen| {
                let slot = &model.slots[seen.slot];
                slot.kind == Kind::State
                    && slot.dtype == seen.dtype
                    && seen.offset == 0
                    && seen.len == slot.len
            };
            let apart = shared[..place].iter().all(|(other, second)| {
                other.slot != seen.slot && !Rc::ptr_eq(&self.buffers[*second].memory, &held.memory)
            });
            seen.plan == model.id
                && own(seen)
                && held.dtype == seen.dtype
                && held.len == seen.len
                && held.device == device
                && apart
        })
    }
}

/// A memory for each slot: zeros, a constant's words, or a shared buffer's.
fn memories(model: &PlanModel, shared: impl Fn(usize) -> Option<Memory>) -> Vec<Memory> {
    let memory = |(place, slot): (usize, &Slot)| {
        let words = usize::try_from(slot.bytes() / 4).unwrap_or(0);
        match slot.kind {
            Kind::Constant => Rc::new(std::cell::RefCell::new(
                slot.data.iter().copied().map(Word::Exact).collect(),
            )),
            // Memory that no launch accesses is never allocated.
            Kind::Temp if !slot.written => zeros(0),
            _ => shared(place).unwrap_or_else(|| zeros(words)),
        }
    };
    model.slots.iter().enumerate().map(memory).collect()
}

impl Running {
    /// The effect of a run on memory.
    pub fn step(&mut self, is_executed: bool) {
        for (slot, memory) in self.model.slots.iter().zip(&self.memories) {
            // Another temporary may have used the memory.
            if slot.kind == Kind::Temp {
                memory.borrow_mut().fill(Word::Unknown);
            }
        }
        if is_executed {
            self.model.steps.iter().for_each(|step| {
                step(&Space {
                    plan: self.model.id,
                    memories: &self.memories,
                })
            });
        } else {
            let kept = |slot: &Slot| matches!(slot.kind, Kind::Input | Kind::Constant);
            self.model
                .slots
                .iter()
                .zip(&self.memories)
                .filter(|(slot, _)| !kept(slot))
                .for_each(|(_, memory)| memory.borrow_mut().fill(Word::Unknown));
        }
        self.downloads = self
            .memories
            .iter()
            .zip(&self.model.slots)
            .map(|(memory, slot)| {
                if slot.kind == Kind::Output {
                    memory.borrow().clone()
                } else {
                    vec![]
                }
            })
            .collect();
        self.ran = true;
        self.dirty = false;
    }

    pub fn check_outputs(&self) -> Verdict {
        for seen in self
            .model
            .views
            .iter()
            .filter(|seen| self.model.slots[seen.slot].kind == Kind::Output && seen.len > 0)
        {
            let found = output_words(&self.run, seen);
            let words = self.downloads[seen.slot][seen.words()].to_vec();
            compare(&words, &found).map_err(|fault| format!("output {seen}: {fault}"))?;
        }
        Ok(())
    }
}

fn output_words(run: &Executable, seen: &Seen) -> Vec<u32> {
    match seen.dtype {
        DType::F32 => bytemuck::cast_slice(run.output::<f32>(seen.view)).to_vec(),
        DType::U32 => run.output::<u32>(seen.view).to_vec(),
        DType::I32 => bytemuck::cast_slice(run.output::<i32>(seen.view)).to_vec(),
        DType::F64 => bytemuck::cast_slice(run.output::<f64>(seen.view)).to_vec(),
    }
}

/// A call for each element type.
macro_rules! typed {
    ($dtype:expr, $T:ident => $call:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $call
            }
            DType::U32 => {
                type $T = u32;
                $call
            }
            DType::I32 => {
                type $T = i32;
                $call
            }
            DType::F64 => {
                type $T = f64;
                $call
            }
        }
    };
}
pub(super) use typed;

/// Words as elements.
pub fn elements<T: tectum::Element>(words: &[u32]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(words)
}

impl World {
    /// Fills the inputs and runs, as most users do.
    pub fn use_run(&mut self, place: usize) -> Verdict {
        self.fill_inputs(place)?;
        self.run(place)
    }

    fn fill_inputs(&mut self, place: usize) -> Verdict {
        let inputs: Vec<Seen> = self.runs[place]
            .model
            .views
            .iter()
            .copied()
            .filter(|seen| self.runs[place].model.slots[seen.slot].kind == Kind::Input)
            .collect();
        for seen in inputs {
            if seen.words().len() < 1 << 20 {
                self.fill_input(place, seen)?;
            }
        }
        Ok(())
    }

    fn fill_input(&mut self, place: usize, seen: Seen) -> Verdict {
        let data = self.data(seen.dtype, seen.len);
        self.note(format!("plan{}: input {seen} {data:x?}", seen.plan));
        let run = &mut self.runs[place].run;
        super::world::caught(|| typed!(seen.dtype, T => run.input::<T>(seen.view).copy_from_slice(&elements::<T>(&data))))
            .map_err(|panic| format!("panicked: {panic}"))?;
        let words: Vec<Word> = data.into_iter().map(Word::Exact).collect();
        self.runs[place].memories[seen.slot].borrow_mut()[seen.words()].copy_from_slice(&words);
        self.runs[place].dirty = true;
        Ok(())
    }

    pub fn run(&mut self, place: usize) -> Verdict {
        let id = self.runs[place].model.id;
        self.note(format!("plan{id}: run"));
        let run = &mut self.runs[place];
        let stats = super::world::caught(|| run.run.run())
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| format!("run: {error}"))?;
        let launches = run.run.code().len();
        if (stats.launches == 0) != (launches == 0) {
            return Err(format!(
                "{} launches counted of {launches} kernels",
                stats.launches
            ));
        }
        run.step(run.device == 0);
        self.note(format!("plan{id}: outputs"));
        if self.runs[place].device == 0 {
            self.runs[place].check_outputs()
        } else {
            Ok(())
        }
    }

    /// One call of an executable.
    pub fn operate(&mut self, place: usize) -> Verdict {
        let seen = self.any_view(place);
        match self.random.below(13) {
            0..3 => self.use_run(place),
            3 => self.run(place),
            4 => self.read_state(place, seen),
            5 => self.write_state(place, seen),
            6 => self.state_buffer(place, seen),
            7 => self.input_of_any(place, seen),
            8 => self.output_of_any(place, seen),
            9 => self.trace(place),
            11 => self.session(place),
            10 if self.chance(3) => {
                self.note(format!("plan{}: drop", self.runs[place].model.id));
                self.runs.swap_remove(place);
                Ok(())
            }
            _ => self.submit(place),
        }
    }

    /// A run within a session, and its receipt.
    fn session(&mut self, place: usize) -> Verdict {
        let id = self.runs[place].model.id;
        let device = self.devices[self.runs[place].device].clone();
        self.note(format!(
            "plan{id}: Session::new, run, uses, fell_back, receipt; name, device, code_of"
        ));
        let run = &mut self.runs[place];
        let made = super::world::caught(|| {
            let mut session = Session::new(&device);
            let stats = session.run(&mut run.run)?;
            session.uses(&run.run);
            session.record_fallback("a launch", "for the test");
            session.record(&stats, 7);
            Ok((
                stats,
                session.runs(),
                session.totals().launches,
                session.receipt(),
            ))
        });
        let (stats, runs, launches, receipt) = made
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error: tectum::Error| error.to_string())?;
        let mut names: Vec<&str> = run
            .run
            .code()
            .iter()
            .map(|code| code.kernel.as_str())
            .collect();
        let mut listed: Vec<&str> = receipt
            .code
            .iter()
            .map(|code| code.kernel.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        listed.dedup();
        let is_right = (runs, launches) == (2, 2 * stats.launches)
            && receipt.fallbacks.len() == 1
            && receipt.device.id == device.info().id;
        if !is_right
            || names != listed
            || Executable::code_of([&run.run]).len() != receipt.code.len()
        {
            return Err(format!(
                "{runs} runs, {launches} launches; the receipt lists {listed:?} on {}",
                receipt.device.id
            ));
        }
        if (run.run.name(), &run.run.device().info().id)
            != (format!("plan{id}").as_str(), &device.info().id)
        {
            return Err(format!("is {} on {:?}", run.run.name(), run.run.device()));
        }
        run.step(run.device == 0);
        if self.runs[place].device == 0 {
            self.runs[place].check_outputs()
        } else {
            Ok(())
        }
    }

    fn any_view(&mut self, place: usize) -> Option<Seen> {
        let views = &self.runs[place].model.views;
        if self.random.below(100) < 15 && !self.strangers.is_empty() {
            let stranger = self.below(self.strangers.len());
            return Some(self.strangers[stranger]);
        }
        let count = views.len();
        let view = self.below(count);
        self.runs[place].model.views.get(view).copied()
    }

    /// Whether a view belongs to this executable and kind, with this element type.
    fn is_of(&self, place: usize, seen: &Seen, kind: Kind, dtype: DType) -> bool {
        let model = &self.runs[place].model;
        seen.plan == model.id && model.slots[seen.slot].kind == kind && seen.dtype == dtype
    }

    fn seen_as(&mut self, seen: Option<Seen>) -> Option<(Seen, DType)> {
        let seen = seen?;
        let dtype = if self.chance(8) {
            self.dtype()
        } else {
            seen.dtype
        };
        Some((seen, dtype))
    }

    fn read_state(&mut self, place: usize, seen: Option<Seen>) -> Verdict {
        let Some((seen, dtype)) = self.seen_as(seen) else {
            return Ok(());
        };
        let wanted = (!self.is_of(place, &seen, Kind::State, dtype)).then_some(ErrorKind::Invalid);
        self.note(format!(
            "plan{}: read_state::<{dtype:?}> {seen}",
            self.runs[place].model.id
        ));
        let run = &self.runs[place].run;
        let read = || typed!(dtype, T => run.read_state::<T>(seen.view).map(|data| bytemuck::cast_slice::<T, u32>(&data).to_vec()));
        let result = super::world::caught(read).map_err(|panic| format!("panicked: {panic}"))?;
        let Some(found) = judged(result, wanted)? else {
            return Ok(());
        };
        if self.runs[place].device != 0 {
            return Ok(());
        }
        let words = self.runs[place].memories[seen.slot].borrow()[seen.words()].to_vec();
        compare(&words, &found).map_err(|fault| format!("state {seen}: {fault}"))
    }

    fn write_state(&mut self, place: usize, seen: Option<Seen>) -> Verdict {
        let Some((seen, dtype)) = self.seen_as(seen) else {
            return Ok(());
        };
        let len = if self.chance(8) {
            self.size()
        } else {
            seen.len.min(1 << 16)
        };
        let fits = self.is_of(place, &seen, Kind::State, dtype) && len == seen.len;
        let data = self.data(dtype, len);
        self.note(format!(
            "plan{}: write_state::<{dtype:?}> {seen} {data:x?}",
            self.runs[place].model.id
        ));
        let run = &mut self.runs[place].run;
        let write = || typed!(dtype, T => run.write_state::<T>(seen.view, &elements::<T>(&data)));
        let result = super::world::caught(write).map_err(|panic| format!("panicked: {panic}"))?;
        if judged(result, (!fits).then_some(ErrorKind::Invalid))?.is_some() {
            let words: Vec<Word> = data.into_iter().map(Word::Exact).collect();
            self.runs[place].memories[seen.slot].borrow_mut()[seen.words()].copy_from_slice(&words);
        }
        Ok(())
    }

    fn state_buffer(&mut self, place: usize, seen: Option<Seen>) -> Verdict {
        let Some(seen) = seen else { return Ok(()) };
        let run = &self.runs[place];
        let is_whole = |seen: &Seen| {
            let slot = &run.model.slots[seen.slot];
            slot.dtype == seen.dtype && seen.len == slot.len && seen.len > 0
        };
        let fits = self.is_of(place, &seen, Kind::State, seen.dtype) && is_whole(&seen);
        let (memory, device) = (run.memories.get(seen.slot).cloned(), run.device);
        let id = run.model.id;
        self.note(format!("plan{id}: state_buffer {seen}"));
        let run = &self.runs[place].run;
        let result = super::world::caught(|| run.state_buffer(seen.view))
            .map_err(|panic| format!("panicked: {panic}"))?;
        let (Some(state), Some(memory)) = (
            judged(result, (!fits).then_some(ErrorKind::Invalid))?,
            memory,
        ) else {
            return Ok(());
        };
        let other = self.dtype();
        let is_refused = typed!(other, T => state.typed::<T>().is_err());
        if (state.len(), state.dtype(), is_refused) != (seen.len, seen.dtype, other != seen.dtype) {
            return Err(format!(
                "gave {state:?} for {seen}; as {other:?} refused: {is_refused}"
            ));
        }
        if self.chance(4) {
            self.duplicate(&state, &memory, device)?;
        }
        let buffer = typed!(seen.dtype, T => state.typed::<T>().map(T::wrap))
            .map_err(|error| error.to_string())?;
        self.hold(buffer, memory, device);
        Ok(())
    }

    /// A copy of a state, which later writes of the state do not change.
    fn duplicate(&mut self, state: &SharedState, memory: &Memory, device: usize) -> Verdict {
        let result = super::world::caught(|| state.duplicate())
            .map_err(|panic| format!("panicked: {panic}"))?;
        let copy =
            typed!(state.dtype(), T => result.and_then(|copy| copy.typed::<T>()).map(T::wrap))
                .map_err(|error| error.to_string())?;
        let words = if device == 0 {
            memory.borrow().clone()
        } else {
            vec![Word::Exact(0); memory.borrow().len()]
        };
        self.hold(copy, Rc::new(std::cell::RefCell::new(words)), device);
        Ok(())
    }

    fn input_of_any(&mut self, place: usize, seen: Option<Seen>) -> Verdict {
        let Some((seen, dtype)) = self.seen_as(seen) else {
            return Ok(());
        };
        if self.is_of(place, &seen, Kind::Input, dtype) {
            return if seen.words().len() < 1 << 20 {
                self.fill_input(place, seen)
            } else {
                Ok(())
            };
        }
        self.note(format!(
            "plan{}: input::<{dtype:?}> {seen}",
            self.runs[place].model.id
        ));
        let run = &mut self.runs[place].run;
        is_refused(super::world::caught(
            || typed!(dtype, T => run.input::<T>(seen.view).len()),
        ))
    }

    fn output_of_any(&mut self, place: usize, seen: Option<Seen>) -> Verdict {
        let Some((seen, dtype)) = self.seen_as(seen) else {
            return Ok(());
        };
        let is_right = self.is_of(place, &seen, Kind::Output, dtype) && self.runs[place].ran;
        self.note(format!(
            "plan{}: output::<{dtype:?}> {seen}",
            self.runs[place].model.id
        ));
        let run = &self.runs[place];
        let result = super::world::caught(
            || typed!(dtype, T => bytemuck::cast_slice::<T, u32>(run.run.output::<T>(seen.view)).to_vec()),
        );
        if !is_right {
            return is_refused(result.map(|words| words.len()));
        }
        let found = result.map_err(|panic| format!("panicked: {panic}"))?;
        if run.device != 0 {
            return Ok(());
        }
        compare(&run.downloads[seen.slot][seen.words()], &found)
            .map_err(|fault| format!("output {seen}: {fault}"))
    }

    fn trace(&mut self, place: usize) -> Verdict {
        // It is unspecified which inputs filled after the last run are used.
        if !self.runs[place].ran || self.runs[place].dirty {
            return Ok(());
        }
        self.note(format!("plan{}: trace", self.runs[place].model.id));
        let run = &mut self.runs[place];
        let times = super::world::caught(|| run.run.trace())
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| format!("trace: {error}"))?;
        if times.is_empty() != run.run.code().is_empty() {
            return Err(format!("{} launches timed", times.len()));
        }
        run.step(run.device == 0);
        // It is unspecified whether outputs are those of the trace or of the previous run.
        run.downloads
            .iter_mut()
            .for_each(|words| words.fill(Word::Unknown));
        Ok(())
    }
}

/// The documented panic for a missing input or output.
fn is_refused(result: Result<usize, String>) -> Verdict {
    const REASONS: [&str; 4] = [
        "a view of another plan",
        "is no input of",
        "is no output of",
        "has not run yet",
    ];
    match result {
        Ok(len) => Err(format!("gave {len} elements; a panic is documented")),
        Err(panic) if REASONS.iter().any(|reason| panic.contains(reason)) => Ok(()),
        Err(panic) => Err(format!("panicked with {panic:?}; another is documented")),
    }
}
