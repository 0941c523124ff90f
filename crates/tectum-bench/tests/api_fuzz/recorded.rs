//! Graphs recorded in plans: over views of every role, with outputs in the views of inputs, with
//! weights in panels, and over views that do not fit.

use std::rc::Rc;

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Activation, DType, ErrorKind, Executable, PlanBuilder, View};
use tectum_graph::{Graph, GraphBuilder, Node, PackedParameter};

use super::graphs::{Ended, Feed, Kind, near};
use super::operation::{Operation, reads, unless, writes};
use super::products::{dot, ended};
use super::world::{Verdict, World, caught, judged};

/// A small graph, `activation(x·w + b)`, recorded over views of a plan: `x`, `w` and the result.
pub fn draw(world: &mut World, plan: usize) -> Operation {
    let [m, k, n] = [(); 3].map(|()| 1 + world.below(7));
    let activation = world
        .random
        .pick(&[Activation::None, Activation::Relu, Activation::Tanh]);
    let bias: Vec<f32> = (0..n)
        .map(|_| world.random.below(17) as f32 / 4.0 - 2.0)
        .collect();
    let (x, w, y) = (
        world.source(plan, DType::F32, m * k),
        world.source(plan, DType::F32, k * n),
        world.target(plan, DType::F32, m * n),
    );
    let is_fused = world.chance(2);
    let lengths = [(x, m * k), (w, k * n), (y, m * n)];
    // A result whose memory is read is computed in a temporary and copied.
    let is_apart = [x, w]
        .iter()
        .any(|seen| (seen.plan, seen.slot) == (y.plan, y.slot));
    let read = [x, w].map(|seen| reads(seen, DType::F32)).to_vec();
    let launches = if is_apart {
        vec![read, vec![writes(y.as_words(), DType::U32)]]
    } else {
        vec![[read, vec![writes(y, DType::F32)]].concat()]
    };
    let added = bias.clone();
    Operation {
        text: format!(
            "record graph {activation:?}(x·w + b) {x} {w} {y} [{m}, {k}, {n}] fused {is_fused} b {bias:?}"
        ),
        refused: unless(
            lengths
                .iter()
                .all(|(seen, len)| seen.len == *len && seen.dtype == DType::F32),
        ),
        launches,
        given: vec![x, w, y],
        record: Box::new(move |plan| {
            let mut g = GraphBuilder::new();
            let (left, right) = (g.input("x", [m, k])?, g.parameter("w", [k, n])?);
            let (product, bias) = (g.matmul(left, right)?, g.constant(&bias, [1, n])?);
            let sum = g.add(product, bias)?;
            let result = g.activate(sum, activation)?;
            g.output("y", result)?;
            let (graph, feeds) = (g.finish()?, [(left, x.view), (right, w.view)]);
            if is_fused {
                graph.record(plan, &feeds, &[(result, y.view)])
            } else {
                graph.record_unfused(plan, &feeds, &[(result, y.view)])
            }
        }),
        step: Rc::new(move |space| {
            let (left, right) = (space.numbers(&x), space.numbers(&w));
            let one = |place: usize| {
                let product =
                    dot((0..k).map(|i| Some((left[place / n * k + i], right[i * n + place % n]))))?;
                Some(ended(
                    product,
                    activation,
                    Some(f64::from(added[place % n])),
                    None,
                ))
            };
            space.put_numbers(&y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

/// How a graph is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Optimized,
    Listed,
    Unfused,
    Packed(PanelFormat),
}

/// The views that a graph is bound to: chosen once, created in any number of plans.
struct Layout<'a> {
    graph: &'a Graph,
    packed: &'a [PackedParameter],
    feeds: &'a [Feed],
    /// Whether the input is in a state of the plan.
    in_state: Vec<bool>,
    /// For each output the input whose view it uses, if it does not have its own view.
    over: Vec<Option<usize>>,
    outputs: Vec<(String, Node)>,
}

/// A plan with the views of a layout.
struct Bound {
    plan: PlanBuilder,
    feeds: Vec<(Node, View)>,
    outputs: Vec<(Node, View)>,
}

impl Layout<'_> {
    fn bound(&self) -> tectum::Result<Bound> {
        let mut plan = PlanBuilder::new("recorded");
        let layout = self.graph.parameter_layout();
        let weights = plan.state("weights", layout.dtype(), layout.len());
        let mut feeds = Vec::new();
        for (feed, in_state) in self.feeds.iter().zip(&self.in_state) {
            let len = feed.data.len();
            let view = match feed.kind {
                Kind::Parameter => layout.entry(&feed.name)?.view(weights),
                Kind::State => plan.state(
                    &feed.name,
                    self.graph.dtype(feed.node)?,
                    self.graph.state_words(feed.node)?,
                ),
                Kind::Indices => plan.input(&feed.name, DType::U32, len),
                Kind::Input if *in_state => plan.state(&feed.name, DType::F32, len),
                Kind::Input => plan.input(&feed.name, DType::F32, len),
            };
            feeds.push((feed.node, view));
        }
        let mut outputs = Vec::new();
        for ((name, node), over) in self.outputs.iter().zip(&self.over) {
            let len = self.graph.shape(*node)?.elements().unwrap_or(0);
            outputs.push((
                *node,
                over.map_or_else(
                    || plan.output(name, DType::F32, len),
                    |input| feeds[input].1,
                ),
            ));
        }
        Ok(Bound {
            plan,
            feeds,
            outputs,
        })
    }

    /// Writes a parameter's part of the weights in the order that the graph reads it in.
    fn write(&self, run: &mut Executable, feed: &Feed, view: View) -> tectum::Result<()> {
        let floats = feed.floats();
        let Some(packed) = self.packed.iter().find(|packed| packed.node == feed.node) else {
            return run.write_state(view, &floats);
        };
        let mut words = vec![0u32; view.len()];
        packed.pack(&floats, &mut words);
        run.write_state(view.reinterpret(DType::U32), &words)
    }
}

fn recorded(
    how: How,
    graph: &Graph,
    plan: &mut PlanBuilder,
    feeds: &[(Node, View)],
    outputs: &[(Node, View)],
) -> tectum::Result<()> {
    match how {
        How::Unfused => graph.record_unfused(plan, feeds, outputs),
        How::Listed => graph
            .record_listed(plan, feeds, outputs)
            .map(|nodes| assert!(!nodes.is_empty(), "nothing is listed")),
        How::Optimized | How::Packed(_) => graph.record(plan, feeds, outputs),
    }
}

impl World {
    /// Records a graph in its own plan, after mistakes that must not change the plan, and runs it.
    pub fn record_graph(&mut self, ended: &Ended<'_>) -> Verdict {
        let format = self.random.pick(&PanelFormat::ALL);
        let how = self.random.pick(&[
            How::Optimized,
            How::Listed,
            How::Unfused,
            How::Packed(format),
        ]);
        let (graph, packed) = match how {
            How::Packed(format) => caught(|| {
                let (graph, mut packed) = ended.graph.optimize().pack_weights(|_| format);
                let (graph, filters) = graph.pack_filters();
                packed.extend(filters);
                (graph, packed)
            })
            .map_err(|panic| format!("panicked: {panic}"))?,
            _ => (ended.graph.clone(), Vec::new()),
        };
        let layout = self.laid_out(ended, &graph, &packed);
        self.note(format!(
            "graph{}: record {how:?}, in states {:?}, over {:?}",
            ended.id, layout.in_state, layout.over
        ));
        let plain = caught(|| {
            let mut bound = layout.bound()?;
            recorded(how, &graph, &mut bound.plan, &bound.feeds, &bound.outputs)?;
            bound.plan.finish().map(|plan| plan.describe())
        });
        let plain = plain
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| error.to_string())?;
        let mut bound = layout.bound().map_err(|error| error.to_string())?;
        for _ in 0..self.below(3) {
            self.mistaken_record(ended, &layout, how, &mut bound)?;
        }
        let Bound {
            mut plan,
            feeds,
            outputs,
        } = bound;
        let device = self.devices[0].clone();
        self.note(format!("graph{}: record, finish, compile", ended.id));
        let made = caught(|| {
            recorded(how, &graph, &mut plan, &feeds, &outputs)?;
            let plan = plan.finish()?;
            Ok((plan.describe(), plan.compile(&device)?))
        });
        let (described, mut run) = made
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error: tectum::Error| error.to_string())?;
        if described != plain {
            return Err(format!(
                "a refused record leaves something in the plan:\n{described}\nnot\n{plain}"
            ));
        }
        self.note(format!("graph{}: fill, run, outputs of the plan", ended.id));
        let found = caught(|| {
            for (feed, (_, view)) in layout.feeds.iter().zip(&feeds) {
                match feed.kind {
                    Kind::Parameter => layout.write(&mut run, feed, *view)?,
                    Kind::State if view.dtype() == DType::U32 => {
                        run.write_state(*view, &vec![0u32; view.len()])?
                    }
                    Kind::State => run.write_state(*view, &feed.floats())?,
                    Kind::Indices => run
                        .input::<u32>(*view)
                        .iter_mut()
                        .zip(&feed.data)
                        .for_each(|(to, value)| *to = *value as u32),
                    Kind::Input
                        if layout.in_state[layout
                            .feeds
                            .iter()
                            .position(|other| other.node == feed.node)
                            .unwrap_or(0)] =>
                    {
                        run.write_state(*view, &feed.floats())?;
                    }
                    Kind::Input => run.input::<f32>(*view).copy_from_slice(&feed.floats()),
                }
            }
            run.run()?;
            let read = |((_, view), over): (&(Node, View), &Option<usize>)| {
                if over.is_some() {
                    run.read_state(*view)
                } else {
                    Ok(run.output(*view).to_vec())
                }
            };
            outputs
                .iter()
                .zip(&layout.over)
                .map(read)
                .collect::<tectum::Result<Vec<Vec<f32>>>>()
        });
        let found = found
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| error.to_string())?;
        // The rounding of 8-bit codes propagates through all later operations: the draws of
        // products compare it with a model.
        let is_quantized = packed
            .iter()
            .any(|packed| packed.format == PanelFormat::Int8);
        for ((name, value), found) in ended.outputs.iter().zip(found) {
            if is_quantized {
                if found.len() != ended.values[*value].data.len()
                    || found.iter().any(|value| value.is_nan())
                {
                    return Err(format!(
                        "graph{} as {how:?}: output {name} is {found:?}\n{}",
                        ended.id, ended.text
                    ));
                }
                continue;
            }
            let found: Vec<f64> = found.into_iter().map(f64::from).collect();
            near(
                &format!("graph{} as {how:?}: output {name} of a plan", ended.id),
                &ended.values[*value],
                &found,
                ended.text,
            )?;
        }
        Ok(())
    }

    fn laid_out<'a>(
        &mut self,
        ended: &Ended<'a>,
        graph: &'a Graph,
        packed: &'a [PackedParameter],
    ) -> Layout<'a> {
        let in_state: Vec<bool> = ended
            .fed
            .iter()
            .map(|feed| feed.kind == Kind::Input && !self.chance(4))
            .collect();
        let mut free: Vec<usize> = (0..ended.fed.len())
            .filter(|place| in_state[*place])
            .collect();
        let mut over = Vec::new();
        for (_, value) in ended.outputs {
            let len = ended.values[*value].data.len();
            let found = free
                .iter()
                .position(|input| ended.fed[*input].data.len() == len)
                .filter(|_| !self.chance(4));
            over.push(found.map(|found| free.swap_remove(found)));
        }
        let outputs = ended
            .outputs
            .iter()
            .map(|(name, value)| (name.clone(), ended.values[*value].node))
            .collect();
        Layout {
            graph,
            packed,
            feeds: ended.fed,
            in_state,
            over,
            outputs,
        }
    }

    /// A call that must be refused.
    fn mistaken_record(
        &mut self,
        ended: &Ended<'_>,
        layout: &Layout<'_>,
        how: How,
        bound: &mut Bound,
    ) -> Verdict {
        let (mut feeds, mut outputs) = (bound.feeds.clone(), bound.outputs.clone());
        let place = self.below(outputs.len());
        let (node, view) = outputs[place];
        let feed = self.below(feeds.len());
        let mut other = PlanBuilder::new("other");
        let foreign = other.output("foreign", DType::F32, view.len());
        let hidden = ended.values.iter().find(|value| {
            ended
                .outputs
                .iter()
                .all(|(_, output)| ended.values[*output].node != value.node)
        });
        let strangers: Vec<Node> = self
            .graphs
            .iter()
            .filter_map(|graph| graph.values.first().map(|value| value.node))
            .collect();
        let mistake = self.below(9);
        match mistake {
            0 if !feeds.is_empty() => feeds.push(feeds[feed]),
            1 => outputs[place].1 = foreign,
            2 => outputs.push((node, view)),
            3 => outputs[place].1 = other.output("long", DType::F32, view.len() + 1),
            4 => outputs[place].1 = other.output("numbers", DType::U32, view.len()),
            5 if hidden.is_some() => outputs.extend(hidden.map(|value| {
                (
                    value.node,
                    other.output("hidden", DType::F32, value.data.len()),
                )
            })),
            6 if !strangers.is_empty() => outputs.push((strangers[0], foreign)),
            7 if !strangers.is_empty() => feeds.push((strangers[0], foreign)),
            8 if !feeds.is_empty() => {
                feeds[feed].1 = other.input("long", feeds[feed].1.dtype(), feeds[feed].1.len() + 1)
            }
            _ => return Ok(()),
        }
        self.note(format!("graph{}: record mistake {mistake}", ended.id));
        let plan = &mut bound.plan;
        let result = caught(|| recorded(how, layout.graph, plan, &feeds, &outputs))
            .map_err(|panic| format!("panicked: {panic}"))?;
        judged(result, Some(ErrorKind::Invalid)).map(|_| ())
    }
}
