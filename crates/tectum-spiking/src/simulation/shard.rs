//! The targets on one device, with their state there.

use std::ops::Range;
use tectum::{Device, Error, Executable, Result, RunStats, Session, View, host_memory};

use super::learning::{LearningState, ShardLearning, workgroups};
use super::record::{ShardPlanInputs, record};
use super::shape::Shape;
use super::views::Views;
use super::{BATCH, SimulationOptions};
use crate::connectome::{self, SynapsePartition};
use crate::kernels::{FIXED_PSP, Kernels, ROW_WORKGROUPS, set_bits};
use crate::network::Network;
use crate::rule::{IdleUpdate, Profile};

/// The targets on one device.
pub struct Shard {
    pub targets: Range<u32>,
    pub views: Views,
    pub single: Executable,
    /// The plan of several bursts, with its own views; its states live in the buffers of `single`.
    pub batch: Option<(Executable, Views)>,
    /// Spikes and marks as the device last counted them.
    pub last_counts: [u32; 3],
    /// Events as the device last counted them.
    pub events: u64,
    /// The bits of the last burst's firings, for the shape's watched words.
    pub watched: Vec<u32>,
    pub shape: Shape,
    pub learned: Option<LearningState>,
    /// Whether the firings were passed as bits.
    pub is_packed: bool,
}

impl Shard {
    pub fn new(
        network: &Network,
        targets: Range<u32>,
        device: &Device,
        options: &SimulationOptions,
        alone: bool,
    ) -> Result<Self> {
        let layout = options
            .layout
            .unwrap_or_else(|| device.info().preferences());
        let shape = Shape::new(network, targets.clone(), layout, options);
        let parts = connectome::partition(network.neurons(), &*network.rows, None, &shape.ranges)?;
        let learned = LearningState::new(network, &shape, options.ledger)?;
        let rules = learned.as_ref().map_or(&[][..], LearningState::rows);
        let kinds: Vec<(usize, &[SynapsePartition])> = std::iter::once((1, &parts[..]))
            .chain(rules.iter().map(|parts| (2, &parts[..])))
            .collect();
        let launches = shape.launches(&kinds, layout);
        check_loops(device, &kinds, &launches)?;
        let kernels = Kernels::new();
        let steady = local(
            &targets,
            options
                .constant_inputs
                .iter()
                .map(|&(neuron, amount)| Ok((neuron, network.injected(neuron, amount)?))),
        )?;
        let source = ShardPlanInputs {
            network,
            shape: &shape,
            kernels: &kernels,
            parts: &parts,
            steady: &steady,
            max_inputs: options.max_inputs,
            launches: &launches,
            is_alone: alone,
            learned: learned.as_ref(),
        };
        let build = |bursts: u32| record(&source, bursts);
        let (plan, views) = build(1)?;
        let mut single = plan.compile(device)?;
        let mut state = host_memory::filled("the state of neurons", 0u32, views.state.len())?;
        for (range, profile) in &network.runs {
            let rest = network.profiles[*profile as usize].rest as u32;
            for neuron in range.start.max(targets.start)..range.end.min(targets.end) {
                state[shape.potential_at((neuron - targets.start) as usize)] = rest;
            }
        }
        single.write_state(views.state, &state)?;
        drop(state);
        if let (Some(views), Some(learned)) = (&views.learned, &learned) {
            learned.write_synapses(network, |range, words| {
                single.write_state(views.synapses.part(range), words)
            })?;
            let past = LearningState::initial_histories(network, views.histories.len())?;
            single.write_state(views.histories, &past)?;
        }
        write_tables(&mut single, &views, &source)?;
        let batch = match alone {
            true => {
                let (plan, other) = build(BATCH)?;
                let pairs = other.shared().into_iter().zip(views.shared());
                let buffers = pairs
                    .map(|(other, view)| Ok((other, single.state_buffer(view)?)))
                    .collect::<Result<Vec<_>>>()?;
                let shared: Vec<_> = buffers
                    .iter()
                    .map(|(view, buffer)| (*view, buffer))
                    .collect();
                Some((plan.compile_with(device, &shared)?, other))
            }
            false => None,
        };
        let watched = vec![0; shape.watched.iter().map(Range::len).sum()];
        Ok(Self {
            targets,
            views,
            single,
            batch,
            last_counts: [0; 3],
            events: 0,
            watched,
            shape,
            learned,
            is_packed: false,
        })
    }

    /// The plan of one burst and, if this is the only shard, that of a batch.
    pub fn executables(&self) -> impl Iterator<Item = &Executable> {
        std::iter::once(&self.single).chain(self.batch.iter().map(|(batch, _)| batch))
    }

    pub fn submit(
        &mut self,
        burst: u32,
        bursts: u32,
        inputs: &[(u32, i32)],
        session: &mut Session,
    ) -> Result<RunStats> {
        let inputs = local(&self.targets, inputs.iter().map(|&input| Ok(input)))?;
        let (executable, views) = match &mut self.batch {
            Some((batch, views)) if bursts > 1 => (batch, &*views),
            _ => (&mut self.single, &self.views),
        };
        executable
            .input::<u32>(views.clock)
            .copy_from_slice(&[burst, u32::from(self.is_packed)]);
        let slot = executable.input::<u32>(views.inputs);
        slot[0] = (inputs.len() / 2) as u32;
        slot[1..][..inputs.len()].copy_from_slice(&inputs);
        session.run(executable)
    }

    pub fn held(&self) -> Option<ShardLearning<'_>> {
        Some(ShardLearning {
            learned: self.learned.as_ref()?,
            views: self.views.learned.as_ref()?,
            executable: &self.single,
        })
    }

    /// Spikes, both marks and events since the last call; stores the bits of watched neurons.
    pub fn take_counts(&mut self, bursts: u32) -> ([u32; 3], u64) {
        let (executable, views) = match &self.batch {
            Some((batch, views)) if bursts > 1 => (batch, views),
            _ => (&self.single, &self.views),
        };
        if let Some(view) = views.watched {
            self.watched.copy_from_slice(executable.output::<u32>(view));
        }
        let (head, events) = (
            executable.output::<u32>(views.head),
            executable.output::<u32>(views.events),
        );
        let (now, events) = (
            [head[1], head[2], head[3]],
            u64::from(events[1]) << 32 | u64::from(events[0]),
        );
        let (before, events_before) = (
            std::mem::replace(&mut self.last_counts, now),
            std::mem::replace(&mut self.events, events),
        );
        (
            [0, 1, 2].map(|index| now[index].wrapping_sub(before[index])),
            events.wrapping_sub(events_before),
        )
    }

    /// Whether a neuron fired in the last burst; none if it is not watched.
    pub fn has_fired(&self, neuron: u32) -> Option<bool> {
        let i = (neuron - self.targets.start) as usize;
        let mut at = 0;
        for words in &self.shape.watched {
            if words.contains(&(i / 32)) {
                return Some(self.watched[at + i / 32 - words.start] >> (i % 32) & 1 != 0);
            }
            at += words.len();
        }
        None
    }

    /// The firings, with the psp that each sends.
    pub fn list(&self) -> Result<Vec<[u32; 2]>> {
        let count = self.single.read_state::<u32>(self.views.fired.part(0..1))?[0] as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let words = self.single.read_state::<u32>(
            self.views
                .fired
                .part(self.shape.list_at..self.shape.list_at + 2 * count),
        )?;
        Ok(words.as_chunks::<2>().0.to_vec())
    }

    /// Adds this shard's firings to a list; reads the shorter form if every sender's psp is
    /// constant.
    pub fn read_spikes(&self, can_pack_bits: bool, list: &mut Vec<[u32; 2]>) -> Result<()> {
        let count = self.single.read_state::<u32>(self.views.fired.part(0..1))?[0] as usize;
        if !can_pack_bits || 2 * count <= self.shape.bit_words {
            list.extend(self.list()?);
            return Ok(());
        }
        let words = self.single.read_state::<u32>(
            self.views
                .fired
                .part(self.shape.bits_at..self.shape.bits_at + self.shape.bit_words),
        )?;
        list.extend(
            set_bits(&words, 0..self.targets.len() as u32)
                .map(|i| [self.targets.start + i, FIXED_PSP]),
        );
        Ok(())
    }

    /// Gives the device all firings as bits, which the next burst expands to a list.
    pub fn write_spike_bits(&mut self, bits: &[u32]) -> Result<()> {
        self.write_spike_list(&[])?;
        self.is_packed = true;
        match self.views.exchanged {
            Some(view) => self.single.write_state(view, bits),
            None => Ok(()),
        }
    }

    /// Gives the device the firings of all devices.
    pub fn write_spike_list(&mut self, list: &[[u32; 2]]) -> Result<()> {
        self.is_packed = false;
        self.single
            .write_state(self.views.fired.part(0..1), &[list.len() as u32])?;
        if list.is_empty() {
            return Ok(());
        }
        let words = list.as_flattened();
        self.single.write_state(
            self.views
                .fired
                .part(self.shape.list_at..self.shape.list_at + words.len()),
            words,
        )
    }

    /// The potentials, including the leak of bursts without arrivals.
    pub fn potentials(&self, network: &Network, burst: u32) -> Result<Vec<i32>> {
        let state = self.single.read_state::<u32>(self.views.state)?;
        let leaks = self.shape.planes == 4 && network.options.idle_update == IdleUpdate::CatchUp;
        let mut potentials = host_memory::with_capacity("potentials", self.targets.len())?;
        for (range, profile) in &network.runs {
            let profile = &network.profiles[*profile as usize];
            for neuron in range.start.max(self.targets.start)..range.end.min(self.targets.end) {
                let at = self
                    .shape
                    .potential_at((neuron - self.targets.start) as usize);
                let silent = if leaks {
                    burst - state[at + self.shape.len]
                } else {
                    0
                };
                potentials.push(profile.leaked(state[at] as i32, silent));
            }
        }
        Ok(potentials)
    }
}

/// Writes what does not change in a run.
fn write_tables(
    executable: &mut Executable,
    views: &Views,
    source: &ShardPlanInputs<'_>,
) -> Result<()> {
    let &ShardPlanInputs {
        network,
        parts,
        launches,
        learned,
        ..
    } = source;
    let mut write = |view: View, words: &[u32]| executable.write_state(view, words);
    write(views.senders, &network.sender_words())?;
    write(
        views.runs,
        &network
            .runs
            .iter()
            .flat_map(|(range, profile)| [range.end, *profile])
            .collect::<Vec<_>>(),
    )?;
    write(
        views.profiles,
        &network
            .profiles
            .iter()
            .flat_map(Profile::words)
            .collect::<Vec<_>>(),
    )?;
    for (launch, rows) in launches.iter().zip(&views.rows) {
        let parts = &parts[launch.clone()];
        write_starts(rows.starts, parts, &mut write)?;
        let mut at = 0;
        for part in parts {
            connectome::pack(&*network.rows, None, part, |first, words| {
                write(rows.words.part(at + first..at + first + words.len()), words)
            })?;
            at += part.padded_len();
        }
    }
    let (rules, views) = (
        learned.map_or(&[][..], LearningState::rows),
        views.learned.iter().flat_map(|views| &views.starts),
    );
    for (parts, views) in rules.iter().zip(views) {
        launches.iter().zip(views).try_for_each(|(launch, view)| {
            write_starts(*view, &parts[launch.clone()], &mut write)
        })?;
    }
    Ok(())
}

/// Writes the starts of rows, part after part.
fn write_starts(
    view: View,
    parts: &[SynapsePartition],
    write: &mut impl FnMut(View, &[u32]) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    for part in parts {
        write(view.part(at..at + part.starts.len()), &part.starts)?;
        at += part.starts.len();
    }
    Ok(())
}

/// Rejects rows that a device might not walk to their ends.
fn check_loops(
    device: &Device,
    kinds: &[(usize, &[SynapsePartition])],
    launches: &[Range<usize>],
) -> Result<()> {
    let Some(most) = device.info().limits.max_loop_iterations else {
        return Ok(());
    };
    for (_, parts) in kinds {
        let slices = connectome::slices(parts);
        for launch in launches {
            let share = workgroups(ROW_WORKGROUPS, launch.len()) / launch.len() as u32;
            for part in &parts[launch.clone()] {
                let turns = part.loop_turns(share, slices) + launch.len() as u64;
                if turns > u64::from(most) {
                    let (Range { start, end }, id) = (&part.targets, &device.info().id);
                    return Err(Error::unsupported(format!(
                        "spiking: up to {turns} turns of loops for the synapses of neurons {start} to {}; {id} ends loops after {most} of an invocation",
                        end - 1
                    )));
                }
            }
        }
    }
    Ok(())
}

/// The injections into a shard's neurons, numbered within it: alternating neuron and amount.
fn local(
    targets: &Range<u32>,
    inputs: impl Iterator<Item = Result<(u32, i32)>>,
) -> Result<Vec<u32>> {
    let mut words = Vec::new();
    for input in inputs {
        let (neuron, amount) = input?;
        if targets.contains(&neuron) {
            words.extend([neuron - targets.start, amount as u32]);
        }
    }
    Ok(words)
}
