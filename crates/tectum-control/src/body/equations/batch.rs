//! The kernel that steps many instances of a system: its step as straight code, as WGSL and over
//! SIMD lanes.

use std::fmt::Write;
use std::sync::Arc;

use tectum::kernel::arguments::Slices;
use tectum::kernel::native::for_each_chunk_pair;
use tectum::{NativeCall, Result};
use tectum_equations::code::{Code, LANES, Number, Recorder, Truth, load_rows, store_rows};
use tectum_equations::{Arithmetic, Comparison, System};

use crate::body::batch::{BatchShape, OUTCOME, StepBodies, StepKernel, with_body};
use crate::body::{ActionChannel, BodySpec};
use crate::kernel::generated;

/// What an instance reads and writes, in the order of the code's inputs and results.
struct Row {
    code: Code,
    /// Numbers of a state on the device, of an action, of the noise, and of an observation with its
    /// outcome.
    widths: [usize; 4],
    /// States of the system; a state on the device has one number more if episodes end.
    states: usize,
}

impl Row {
    fn has_starts(&self) -> bool {
        self.widths[0] > self.states
    }
}

/// Defines the kernel.
///
/// # Errors
/// What the device language does not accept: a bug here.
pub(crate) fn step_kernel(
    spec: &BodySpec,
    system: &System,
    parameters: &[f64],
) -> Result<(BatchShape, StepKernel)> {
    let row = record(spec, system, parameters);
    let (text, shape) = (
        wgsl(&row),
        BatchShape {
            numbers: row.widths[0],
            states: row.states,
            has_starts: row.has_starts(),
            uniforms: row.widths[2],
            block: LANES,
        },
    );
    let builder = with_body(StepBodies::define("body_equations"), &[&text]).data(Arc::new(row));
    let present = [("starts", shape.has_starts), ("noise", shape.uniforms > 0)];
    let builder = present
        .into_iter()
        .filter(|(_, is_present)| *is_present)
        .fold(builder, |builder, (name, _)| builder.with(name));
    Ok((
        shape,
        StepKernel::new(generated(builder, step_lanes)?, |step| step),
    ))
}

/// What is applied of an action, in base units: the safe action if a number is not finite.
pub(crate) fn applied(
    recorder: &mut Recorder,
    spec: &BodySpec,
    system: &System,
    action: &[Number],
) -> Vec<Number> {
    let all_finite = action.iter().fold(Truth::Constant(true), |all, number| {
        let finite = recorder.is_finite(number);
        recorder.and(&all, &finite)
    });
    let channels = spec
        .action
        .iter()
        .zip(&spec.safe_action)
        .zip(system.inputs())
        .zip(action);
    let applied = channels.map(|(((channel, safe), input), number)| {
        let number = within(recorder, channel, number);
        let number = recorder.select(&all_finite, &number, &Number::Constant(f64::from(*safe)));
        recorder.scaled(&number, input.unit.scale)
    });
    applied.collect()
}

/// A finite number, in the range of its channel.
pub(crate) fn within(recorder: &mut Recorder, channel: &ActionChannel, number: &Number) -> Number {
    let [low, high] = [channel.low, channel.high].map(f64::from);
    if channel.discrete {
        let is_low = recorder.compare(Comparison::Less, number, &Number::Constant(0.0));
        return recorder.select(&is_low, &Number::Constant(low), &Number::Constant(high));
    }
    recorder.clamp(number, [low, high])
}

/// Inputs: states, actions, uniform numbers; if episodes end, whether this one did, and where it
/// starts. Results: states and whether the episode ended, if any do; observation, reward, and
/// whether it ended.
fn record(spec: &BodySpec, system: &System, parameters: &[f64]) -> Row {
    let mut recorder = Recorder::default();
    let inputs = |recorder: &mut Recorder, count: usize| {
        (0..count).map(|_| recorder.input()).collect::<Vec<_>>()
    };
    let (states, uniforms) = (system.states().len(), 2 * system.noises().len());
    let [mut state, action, drawn] =
        [states, spec.action.len(), uniforms].map(|count| inputs(&mut recorder, count));
    let action = applied(&mut recorder, spec, system, &action);
    let noise = system.record_disturbances(&mut recorder, parameters, &drawn);
    let (mut reward, terminated) =
        system.step_with(&mut recorder, parameters, &mut state, [&action, &noise]);
    let has_starts = terminated != Truth::Constant(false);
    let mut ends = recorder.flag(&terminated);
    if has_starts {
        let (ended, starts) = (recorder.input(), inputs(&mut recorder, states));
        let had_ended = recorder.compare(Comparison::Greater, &ended, &Number::Constant(0.0));
        for (number, start) in state.iter_mut().zip(&starts) {
            *number = recorder.select(&had_ended, start, number);
        }
        [reward, ends] = [reward, ends]
            .map(|number| recorder.select(&had_ended, &Number::Constant(0.0), &number));
    }
    let shown = system.record_observations(&mut recorder, parameters, &state);
    let widths = [
        states + usize::from(has_starts),
        spec.action.len(),
        uniforms,
        shown.len() + OUTCOME,
    ];
    let kept = state.into_iter().chain(has_starts.then_some(ends));
    let results: Vec<Number> = kept.chain(shown).chain([reward, ends]).collect();
    Row {
        code: recorder.finish(&results),
        widths,
        states,
    }
}

fn wgsl(row: &Row) -> String {
    let Row {
        code,
        widths: [numbers, actions, uniforms, shown],
        states,
    } = row;
    let mut text = String::from(
        "@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {\n    \
         for (var k = id.x; k < params.count; k += groups.x * 64u) {\n",
    );
    let _ = writeln!(
        text,
        "    let first = k / {LANES}u * {}u + k % {LANES}u;",
        LANES * numbers
    );
    let in_rows =
        |buffer: &str, width: usize, place: usize| format!("{buffer}[{width}u * k + {place}u]");
    let in_state = |place: usize| format!("state[first + {}u]", LANES * place);
    let before = (0..*states).map(in_state);
    let before = before.chain((0..*actions).map(|place| in_rows("actions", *actions, place)));
    let before = before.chain((0..*uniforms).map(|place| in_rows("noise", *uniforms, place)));
    for (input, value) in before.chain((*states..*numbers).map(in_state)).enumerate() {
        let _ = writeln!(text, "    let i{input} = {value};");
    }
    for place in 0..if row.has_starts() { *states } else { 0 } {
        let (input, ended) = (code.inputs() - states + place, code.inputs() - states - 1);
        let _ = writeln!(
            text,
            "    var i{input} = 0.0;\n    if (i{ended} > 0.0) {{ i{input} = {}; }}",
            in_rows("starts", *numbers, place)
        );
    }
    text += code.wgsl();
    for (place, result) in code.wgsl_results().iter().enumerate() {
        let target = if place < *numbers {
            in_state(place)
        } else {
            in_rows("shown", *shown, place - numbers)
        };
        let _ = writeln!(text, "    {target} = {result};");
    }
    text + "    }\n}\n"
}

/// One step of many instances, in f32.
fn step_lanes(
    call: &NativeCall<'_>,
    StepBodies {
        actions,
        starts,
        noise,
        state,
        shown,
        count,
    }: StepBodies<Slices<'_>>,
) {
    let row = call.data::<Row>();
    let Row {
        code,
        widths: [numbers, action, uniforms, outputs],
        states,
    } = row;
    let (starts, noise) = (starts.unwrap_or_default(), noise.unwrap_or_default());
    let threads = call.threads_for(code.operations() * count / 16);
    let part = count.div_ceil(4 * threads).next_multiple_of(LANES);
    let (state, shown) = (
        &mut state[..count.next_multiple_of(LANES) * numbers],
        &mut shown[..count * outputs],
    );
    for_each_chunk_pair(
        (state, shown),
        [part * numbers, part * outputs],
        threads,
        |index, states_of_part, shown| {
            let mut slots = code.slots();
            for (block, (state, shown)) in states_of_part
                .chunks_mut(LANES * numbers)
                .zip(shown.chunks_mut(LANES * outputs))
                .enumerate()
            {
                let (first, lanes) = (index * part + block * LANES, shown.len() / outputs);
                let rows = |width: usize| first * width..(first + lanes) * width;
                let state = state.as_chunks_mut::<LANES>().0;
                slots
                    .iter_mut()
                    .zip(&state[..*states])
                    .for_each(|(slot, numbers)| slot.0 = *numbers);
                let (given, rest) = slots[*states..].split_at_mut(*action);
                load_rows(given, &actions[rows(*action)], *action);
                let (drawn, rest) = rest.split_at_mut(*uniforms);
                load_rows(drawn, &noise[rows(*uniforms)], *uniforms);
                if row.has_starts() {
                    let (ended, rest) = rest.split_at_mut(1);
                    ended[0].0 = state[*states];
                    // Without a branch for each instance, which would be mispredicted for every one
                    // that ended.
                    let (mut which, mut count) = ([0u8; LANES], 0);
                    for (lane, ended) in ended[0][..lanes].iter().enumerate() {
                        which[count] = lane as u8;
                        count += usize::from(*ended > 0.0);
                    }
                    for lane in which[..count].iter().map(|lane| usize::from(*lane)) {
                        let start = &starts[(first + lane) * numbers..][..*states];
                        rest.iter_mut()
                            .zip(start)
                            .for_each(|(slot, number)| slot[lane] = *number);
                    }
                }
                code.run(&mut slots);
                let (kept, seen) = code.results().split_at(*numbers);
                state
                    .iter_mut()
                    .zip(kept)
                    .for_each(|(numbers, place)| *numbers = slots[*place].0);
                store_rows(&slots, seen, shown);
            }
        },
    );
}
