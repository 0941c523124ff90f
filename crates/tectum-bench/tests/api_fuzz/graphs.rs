//! Graphs: built node by node with own and foreign nodes, described, parsed, optimized,
//! differentiated, evaluated and compiled.
//!
//! The model computes each node in float64 when it is added, from values drawn for its inputs,
//! together with a bound for f32: the maximum magnitude and the maximum error of its elements, by
//! running error analysis.

use tectum::{Activation, CacheFormats, DType, ErrorKind};
use tectum_graph::{CompiledGraph, Factor, Graph, GraphBuilder, Node, Pass, Shape, Tensor};

use super::networks::{Extra, Fed};
use super::operation::product;
use super::world::{Verdict, World, caught, judged};

/// Half a unit in the last place, with a margin for reordering by fusion.
pub const UNIT: f64 = f32::EPSILON as f64 * 2.0;

/// The value of a node.
#[derive(Debug, Clone)]
pub struct Value {
    pub node: Node,
    pub shape: [usize; 2],
    pub data: Vec<f64>,
    /// The maximum magnitude and error of an f32 evaluation.
    pub size: f64,
    pub error: f64,
    /// The name of a feed, and whether it is a parameter.
    pub fed: Option<(String, bool)>,
}

/// A graph under construction with its values.
#[derive(Default)]
pub struct Built {
    pub id: u64,
    pub builder: GraphBuilder,
    pub values: Vec<Value>,
    /// Feeds that are not values.
    pub extras: Vec<Extra>,
    pub outputs: Vec<(String, usize)>,
}

pub type Added = (
    String,
    Option<ErrorKind>,
    Box<dyn FnOnce(&mut GraphBuilder) -> tectum::Result<Node>>,
    [usize; 2],
    Vec<f64>,
    f64,
);

impl World {
    /// Some calls on one graph; occasionally it is finished and used in all ways.
    pub fn use_graphs(&mut self) -> Verdict {
        if self.graphs.len() < 3 && (self.graphs.is_empty() || self.chance(4)) {
            self.note(format!("graph{} = GraphBuilder::new", self.calls + 1));
            self.graphs.push(Built {
                id: self.calls,
                ..Built::default()
            });
            let place = self.graphs.len() - 1;
            for _ in 0..2 {
                self.leaf(place)?;
            }
        }
        let place = self.below(self.graphs.len());
        for _ in 0..1 + self.below(6) {
            match self.random.below(14) {
                0 => self.leaf(place)?,
                1 | 12 | 13 => self.name_output(place)?,
                2 => self.huge_leaf(place)?,
                3 => return self.foreign_node(place),
                4 if self.chance(6) => return self.lettered_graph(),
                _ => self.node(place)?,
            }
        }
        if self.chance(3) {
            self.end_graph(place)
        } else {
            Ok(())
        }
    }

    pub fn small(&mut self, len: usize) -> Vec<f64> {
        (0..len)
            .map(|_| self.random.below(17) as f64 / 4.0 - 2.0)
            .collect()
    }

    fn leaf(&mut self, place: usize) -> Verdict {
        let shape = [1 + self.below(4), 1 + self.below(5)];
        let data = self.small(shape[0] * shape[1]);
        let name = format!("v{}", self.below(12));
        let how = self.below(3);
        let taken = self.graphs[place]
            .values
            .iter()
            .any(|value| value.fed.as_ref().is_some_and(|(other, _)| *other == name));
        let wanted = (how < 2 && taken).then_some(ErrorKind::Invalid);
        let graph = &mut self.graphs[place];
        let text = format!(
            "graph{}: {} {name} {shape:?}",
            graph.id,
            ["input", "parameter", "constant"][how]
        );
        let floats: Vec<f32> = data.iter().map(|&value| value as f32).collect();
        let builder = &mut graph.builder;
        let result = caught(|| match how {
            0 => builder.input(&name, shape),
            1 => builder.parameter(&name, shape),
            _ => builder.constant(&floats, shape),
        });
        self.note(text);
        if let Some(node) = judged(
            result.map_err(|panic| format!("panicked: {panic}"))?,
            wanted,
        )? {
            self.graphs[place].values.push(Value {
                node,
                shape,
                data,
                size: 2.0,
                error: 0.0,
                fed: (how < 2).then_some((name, how == 1)),
            });
        }
        Ok(())
    }

    /// Shapes without elements, and with too many; a graph that accepted one is abandoned.
    fn huge_leaf(&mut self, place: usize) -> Verdict {
        let shape = [self.extreme(), self.extreme()];
        let total = product(&shape);
        let wanted = (total == 0 || total > u128::from(u32::MAX)).then_some(ErrorKind::Invalid);
        self.note(format!(
            "graph{}: input huge {shape:?}",
            self.graphs[place].id
        ));
        let builder = &mut self.graphs[place].builder;
        let result = caught(|| builder.input("huge", shape))
            .map_err(|panic| format!("panicked: {panic}"))?;
        if judged(result, wanted)?.is_some() {
            self.graphs.swap_remove(place);
            self.graphs.push(Built {
                id: self.calls,
                ..Built::default()
            });
        }
        Ok(())
    }

    /// A node of another graph.
    fn foreign_node(&mut self, place: usize) -> Verdict {
        let others: Vec<Node> = (0..self.graphs.len())
            .filter(|&other| other != place)
            .flat_map(|other| self.graphs[other].values.iter().map(|value| value.node))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        let node = others[self.below(others.len())];
        let how = self.below(4);
        self.note(format!(
            "graph{}: {} of foreign {node}",
            self.graphs[place].id,
            ["tanh", "add", "output", "matmul"][how]
        ));
        let mut given = std::mem::take(&mut self.graphs[place]);
        let own = given.values.first().map_or(node, |value| value.node);
        let result = caught(|| match how {
            0 => given.builder.tanh(node).map(|_| ()),
            1 => given.builder.add(own, node).map(|_| ()),
            2 => given.builder.output("foreign", node),
            _ => given.builder.matmul(own, node).map(|_| ()),
        });
        match result.map_err(|panic| format!("panicked: {panic}"))? {
            Err(error) if error.kind() == ErrorKind::Invalid => self.graphs[place] = given,
            Err(error) => return Err(format!("{:?}: {error}", error.kind())),
            Ok(()) => return Err("accepted".to_owned()),
        }
        Ok(())
    }

    fn name_output(&mut self, place: usize) -> Verdict {
        let count = self.graphs[place].values.len();
        if count == 0 {
            return Ok(());
        }
        let (value, name) = (self.below(count), format!("o{}", self.below(4)));
        let taken = self.graphs[place]
            .outputs
            .iter()
            .any(|(other, _)| *other == name);
        self.note(format!(
            "graph{}: output {name} {}",
            self.graphs[place].id, self.graphs[place].values[value].node
        ));
        let graph = &mut self.graphs[place];
        let node = graph.values[value].node;
        let result = caught(|| graph.builder.output(&name, node))
            .map_err(|panic| format!("panicked: {panic}"))?;
        if judged(result, taken.then_some(ErrorKind::Invalid))?.is_some() {
            self.graphs[place].outputs.push((name, value));
        }
        Ok(())
    }

    fn node(&mut self, place: usize) -> Verdict {
        let count = self.graphs[place].values.len();
        if count == 0 {
            return self.leaf(place);
        }
        let (first, second) = (self.below(count), self.below(count));
        let x = self.graphs[place].values[first].clone();
        let y = self.graphs[place].values[second].clone();
        let (text, wanted, add, shape, data, error) = match self.random.below(13) {
            0 | 1 => self.elementwise(&x),
            2 => self.reduced_node(&x),
            3 => self.moved_node(&x),
            4 => self.matrix_product(&x, &y),
            5 => self.norm(&x),
            6 => self.pair(&x, &y),
            kind => match if kind < 10 {
                self.network(place, &x)?
            } else {
                self.image(place, &x)?
            } {
                Some(added) => added,
                None => return Ok(()),
            },
        };
        self.note(format!("graph{}: {text}", self.graphs[place].id));
        let builder = &mut self.graphs[place].builder;
        let result = caught(|| add(builder)).map_err(|panic| format!("panicked: {panic}"))?;
        let Some(node) = judged(result, wanted)? else {
            return Ok(());
        };
        let size = data
            .iter()
            .fold(0.0f64, |size, value| size.max(value.abs()));
        // A value beyond the bounds does not determine the result.
        if size < 1e6 {
            self.graphs[place].values.push(Value {
                node,
                shape,
                data,
                size,
                error,
                fed: None,
            });
        }
        Ok(())
    }

    fn elementwise(&mut self, x: &Value) -> Added {
        let (node, shape) = (x.node, x.shape);
        let map = |f: &dyn Fn(f64) -> f64| x.data.iter().map(|&value| f(value)).collect::<Vec<_>>();
        match self.random.below(6) {
            0 => (
                format!("tanh {node}"),
                None,
                Box::new(move |g| g.tanh(node)),
                shape,
                map(&f64::tanh),
                x.error + 16.0 * UNIT,
            ),
            1 => (
                format!("relu {node}"),
                None,
                Box::new(move |g| g.relu(node)),
                shape,
                map(&|x| x.max(0.0)),
                x.error,
            ),
            2 => (
                format!("sigmoid {node}"),
                None,
                Box::new(move |g| g.sigmoid(node)),
                shape,
                map(&|x| 1.0 / (1.0 + (-x).exp())),
                x.error + 16.0 * UNIT,
            ),
            3 => {
                let factor =
                    self.random
                        .pick(&[0.5f32, -1.0, 2.0, 0.0, f32::NAN, f32::INFINITY, 1.0]);
                let wanted = (!factor.is_finite()).then_some(ErrorKind::Invalid);
                let scaled = map(&|x| {
                    if factor.is_finite() {
                        x * f64::from(factor)
                    } else {
                        0.0
                    }
                });
                (
                    format!("scale {node} {factor}"),
                    wanted,
                    Box::new(move |g| g.scale(node, factor)),
                    shape,
                    scaled,
                    2.0 * (x.error + UNIT * x.size),
                )
            }
            4 => {
                let soft = x.data.chunks(shape[1]).flat_map(|row| {
                    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let total: f64 = row.iter().map(|value| (value - most).exp()).sum();
                    row.iter()
                        .map(|value| (value - most).exp() / total)
                        .collect::<Vec<_>>()
                });
                let error = 2.0 * x.error + (64.0 + 2.0 * x.size) * UNIT;
                let axis = if self.chance(5) { 2 + self.below(3) } else { 1 };
                let wanted = (axis > 1).then_some(ErrorKind::Invalid);
                (
                    format!("softmax {node} axis {axis}"),
                    wanted,
                    Box::new(move |g| g.softmax(node, axis)),
                    shape,
                    soft.collect(),
                    error,
                )
            }
            _ => {
                let activation = self.random.pick(&Activation::ALL);
                // `None` gives the node itself.
                let values = map(&|x| activation.reference(x));
                (
                    format!("activate {node} {activation:?}"),
                    None,
                    Box::new(move |g| g.activate(node, activation)),
                    shape,
                    values,
                    1.2 * x.error + 16.0 * UNIT * (1.0 + x.size),
                )
            }
        }
    }

    /// Layer norm or RMS norm. An epsilon of the size of the elements keeps the propagated errors
    /// within bounds.
    fn norm(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let centred = self.chance(2);
        let epsilon = self
            .random
            .pick(&[0.5f32, 0.5, 1.0, 1.0, 2.0, 0.0, -1.0, f32::NAN]);
        let long = usize::from(self.chance(8));
        let wanted = (long > 0 || epsilon.is_nan() || epsilon <= 0.0).then_some(ErrorKind::Invalid);
        let [gain, bias] = [(); 2].map(|()| self.small(cols));
        let normed = |row: &[f64]| {
            let mean = if centred {
                row.iter().sum::<f64>() / cols as f64
            } else {
                0.0
            };
            let square = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / cols as f64;
            let shift = |col: usize| if centred { bias[col] } else { 0.0 };
            let root = (square + f64::from(epsilon)).sqrt();
            row.iter()
                .enumerate()
                .map(|(col, value)| (value - mean) / root * gain[col] + shift(col))
                .collect::<Vec<_>>()
        };
        let data: Vec<f64> = if wanted.is_none() {
            x.data.chunks(cols).flat_map(normed).collect()
        } else {
            vec![0.0; rows * cols]
        };
        let count = cols as f64;
        // A gain is at most 2.
        let error = 2.0
            * (4.0 * (1.0 + count.sqrt()) * (x.error + count * UNIT * (1.0 + x.size))
                / f64::from(epsilon).max(0.5).sqrt()
                + 8.0 * UNIT);
        let text = format!(
            "{} {node} epsilon {epsilon}, {long} too long",
            if centred { "layer_norm" } else { "rms_norm" }
        );
        let [gain, bias] = [gain, bias].map(|vector| {
            vector
                .iter()
                .map(|value| *value as f32)
                .chain(std::iter::repeat_n(0.0, long))
                .collect::<Vec<f32>>()
        });
        let add = move |g: &mut GraphBuilder| {
            let shape = [cols + long];
            let gain = g.constant(&gain, shape)?;
            if !centred {
                return g.rms_norm(node, gain, epsilon);
            }
            let bias = g.constant(&bias, shape)?;
            g.layer_norm(node, gain, bias, epsilon)
        };
        (text, wanted, Box::new(add), x.shape, data, error)
    }

    fn reduced_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let count = (rows * cols) as f64;
        let error = |n: f64| n * (x.error + UNIT * n * x.size);
        match self.random.below(4) {
            0 => (
                format!("sum {node}"),
                None,
                Box::new(move |g| g.sum(node)),
                [1, 1],
                vec![x.data.iter().sum()],
                error(count),
            ),
            1 => {
                let sums = (0..cols).map(|col| (0..rows).map(|row| x.data[row * cols + col]).sum());
                (
                    format!("sum_over_rows {node}"),
                    None,
                    Box::new(move |g| g.sum_over_rows(node)),
                    [1, cols],
                    sums.collect(),
                    error(rows as f64),
                )
            }
            2 => {
                let axis = if self.chance(4) {
                    self.extreme().max(2)
                } else {
                    1
                };
                let sums = x.data.chunks(cols).map(|row| row.iter().sum());
                let wanted = (axis > 1).then_some(ErrorKind::Invalid);
                (
                    format!("sum_axis {node} {axis}"),
                    wanted,
                    Box::new(move |g| g.sum_axis(node, axis)),
                    [rows, 1],
                    sums.collect(),
                    error(cols as f64),
                )
            }
            _ => (
                format!("mean {node}"),
                None,
                Box::new(move |g| g.mean(node)),
                [1, 1],
                vec![x.data.iter().sum::<f64>() / count],
                error(count),
            ),
        }
    }

    fn moved_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        match self.random.below(4) {
            0 => {
                let shape = if self.chance(4) {
                    [self.extreme(), cols]
                } else {
                    [cols, rows]
                };
                let wanted =
                    (product(&shape) != (rows * cols) as u128).then_some(ErrorKind::Invalid);
                (
                    format!("reshape {node} {shape:?}"),
                    wanted,
                    Box::new(move |g| g.reshape(node, shape)),
                    shape,
                    x.data.clone(),
                    x.error,
                )
            }
            1 => {
                let order = self
                    .random
                    .pick(&[[1, 0], [0, 1], [1, 1], [0, usize::MAX], [2, 0]]);
                let wanted = (!matches!(order, [1, 0] | [0, 1])).then_some(ErrorKind::Invalid);
                let shape = if order == [1, 0] {
                    [cols, rows]
                } else {
                    [rows, cols]
                };
                let moved = (0..rows * cols)
                    .map(|at| {
                        if order == [1, 0] {
                            x.data[at % rows * cols + at / rows]
                        } else {
                            x.data[at]
                        }
                    })
                    .collect();
                (
                    format!("permute {node} {order:?}"),
                    wanted,
                    Box::new(move |g| g.permute(node, &order)),
                    shape,
                    moved,
                    x.error,
                )
            }
            2 => {
                let (mut start, mut len) = (self.below(cols), 1 + self.below(cols));
                if self.chance(6) {
                    (start, len) = if self.chance(2) {
                        (self.extreme(), len)
                    } else {
                        (start, self.extreme())
                    };
                }
                let fits = len > 0 && start.checked_add(len).is_some_and(|end| end <= cols);
                let data = if fits {
                    x.data
                        .chunks(cols)
                        .flat_map(|row| row[start..start + len].to_vec())
                        .collect()
                } else {
                    vec![]
                };
                (
                    format!("slice {node} 1 {start}+{len}"),
                    (!fits).then_some(ErrorKind::Invalid),
                    Box::new(move |g| g.slice(node, 1, start, len)),
                    [rows, len],
                    data,
                    x.error,
                )
            }
            _ => {
                let count = self.below(4);
                let data = (0..count).flat_map(|_| x.data.clone()).collect();
                let wanted = (count == 0).then_some(ErrorKind::Invalid);
                (
                    format!("concat {count} x {node}"),
                    wanted,
                    Box::new(move |g| g.concat(&vec![node; count], 0)),
                    [rows * count, cols],
                    data,
                    x.error,
                )
            }
        }
    }

    fn matrix_product(&mut self, x: &Value, y: &Value) -> Added {
        let flips = [self.chance(2), self.chance(2)];
        let oriented = |value: &Value, flip: bool| {
            if flip {
                [value.shape[1], value.shape[0]]
            } else {
                value.shape
            }
        };
        let ([m, k], [inner, n]) = (oriented(x, flips[0]), oriented(y, flips[1]));
        let at = |value: &Value, flip: bool, row: usize, col: usize| {
            value.data[if flip {
                col * value.shape[1] + row
            } else {
                row * value.shape[1] + col
            }]
        };
        let fits = k == inner;
        let element = |place: usize| {
            (0..k)
                .map(|i| at(x, flips[0], place / n, i) * at(y, flips[1], i, place % n))
                .sum()
        };
        let data = if fits {
            (0..m * n).map(element).collect()
        } else {
            vec![]
        };
        let error = k as f64
            * (x.error * y.size
                + y.error * x.size
                + x.error * y.error
                + UNIT * (k + 1) as f64 * x.size * y.size);
        let (a, b) = (x.node, y.node);
        let factor = |node: Node, flip: bool| {
            if flip {
                node.transpose()
            } else {
                Factor::from(node)
            }
        };
        let add = move |g: &mut GraphBuilder| g.matmul(factor(a, flips[0]), factor(b, flips[1]));
        (
            format!("matmul {a} {b} {flips:?}"),
            (!fits).then_some(ErrorKind::Invalid),
            Box::new(add),
            [m, n],
            data,
            error,
        )
    }

    fn pair(&mut self, x: &Value, y: &Value) -> Added {
        // Each dimension is equal, or one of them is 1.
        let how = self.below(4);
        let agree = (0..2)
            .all(|axis| x.shape[axis] == y.shape[axis] || x.shape[axis] == 1 || y.shape[axis] == 1);
        let whole = if agree {
            [0, 1].map(|axis| x.shape[axis].max(y.shape[axis]))
        } else {
            [0, 0]
        };
        let fits = if how == 3 { x.shape == y.shape } else { agree };
        let element = |value: &Value, place: usize| {
            let [row, column] = [
                place / whole[1] % value.shape[0],
                place % whole[1] % value.shape[1],
            ];
            value.data[row * value.shape[1] + column]
        };
        let (left, right) = (
            |place: usize| element(x, place),
            |place: usize| element(y, place),
        );
        let each = |f: &dyn Fn(f64, f64) -> f64| {
            (0..whole[0] * whole[1])
                .map(|place| f(left(place), right(place)))
                .collect::<Vec<f64>>()
        };
        let (a, b) = (x.node, y.node);
        let wanted = (!fits).then_some(ErrorKind::Invalid);
        let (sum, error) = (x.size + y.size, x.error + y.error);
        let product_error =
            x.error * y.size + y.error * x.size + x.error * y.error + UNIT * x.size * y.size;
        match how {
            0 => (
                format!("add {a} {b}"),
                wanted,
                Box::new(move |g| g.add(a, b)),
                whole,
                each(&|a, b| a + b),
                error + UNIT * sum,
            ),
            1 => (
                format!("sub {a} {b}"),
                wanted,
                Box::new(move |g| g.sub(a, b)),
                whole,
                each(&|a, b| a - b),
                error + UNIT * sum,
            ),
            2 => (
                format!("mul {a} {b}"),
                wanted,
                Box::new(move |g| g.mul(a, b)),
                whole,
                each(&|a, b| a * b),
                product_error,
            ),
            _ => {
                let squares = each(&|a, b| (a - b) * (a - b));
                let mean = squares.iter().sum::<f64>() / squares.len() as f64;
                let bound = 4.0
                    * (error * sum + error * error + UNIT * (squares.len() + 4) as f64 * sum * sum);
                (
                    format!("mse {a} {b}"),
                    wanted,
                    Box::new(move |g| g.mse(a, b)),
                    [1, 1],
                    vec![mean],
                    bound,
                )
            }
        }
    }

    /// All uses of a complete graph.
    fn end_graph(&mut self, place: usize) -> Verdict {
        let Built {
            id,
            builder,
            values,
            extras,
            outputs,
        } = self.graphs.swap_remove(place);
        let wanted = outputs.is_empty().then_some(ErrorKind::Invalid);
        let Some(graph) = self.expect(format_args!("graph{id}: finish"), wanted, || {
            builder.finish()
        })?
        else {
            return Ok(());
        };
        let text = self.call(format_args!("graph{id}: describe"), || graph.describe())?;
        // The text of a long constant omits values, so it cannot be parsed.
        let wanted = text.contains('…').then_some(ErrorKind::Invalid);
        let parsed = self.expect(
            format_args!("graph{id}: parse its description"),
            wanted,
            || Graph::parse(&text),
        )?;
        if let Some(parsed) = parsed.filter(|parsed| parsed.describe() != text) {
            return Err(format!(
                "reads back as\n{}\nnot as\n{text}",
                parsed.describe()
            ));
        }
        let fed = fed(&graph, &values, &extras)?;
        let feeds: Vec<(Node, Tensor)> = fed
            .iter()
            .map(|fed| Ok((fed.node, Tensor::new(fed.shape, fed.data.clone())?)))
            .collect::<tectum::Result<_>>()
            .map_err(|error| error.to_string())?;
        let pass = self.random.pick(&Pass::ALL);
        self.note(format!(
            "graph{id}: evaluate, optimize, optimize_without {pass}"
        ));
        let forms = caught(|| {
            [
                graph.evaluate(&feeds),
                graph.optimize().evaluate(&feeds),
                graph.optimize_without(&[pass]).evaluate(&feeds),
            ]
        });
        for (form, found) in ["as built", "optimized", "without a pass"]
            .into_iter()
            .zip(forms.map_err(|panic| format!("panicked: {panic}"))?)
        {
            let found = found.map_err(|error| format!("{form}: {error}"))?;
            for ((name, value), tensor) in outputs.iter().zip(&found) {
                near(
                    &format!("graph{id}, {form}: output {name}"),
                    &values[*value],
                    tensor.data(),
                    &text,
                )?;
            }
        }
        self.gradients(id, &graph, &values, &feeds, &outputs)?;
        let device = self.devices[0].clone();
        let fused = self.chance(2);
        self.note(format!("graph{id}: compile, fused {fused}"));
        let compiled = caught(|| {
            if fused {
                graph.compile(&device)
            } else {
                graph.compile_unfused(&device)
            }
        })
        .map_err(|panic| format!("panicked: {panic}"))?;
        self.run_graph(
            id,
            compiled.map_err(|error| error.to_string())?,
            (&graph, &fed),
            &values,
            &outputs,
            &text,
        )?;
        if graph.states().next().is_some() {
            self.other_caches(id, &graph, &fed)?;
        }
        self.record_graph(&Ended {
            id,
            graph: &graph,
            fed: &fed,
            values: &values,
            outputs: &outputs,
            text: &text,
        })
    }

    /// The same graph with its caches in another format: its description parses, and its states
    /// have the stated size.
    fn other_caches(&mut self, id: u64, graph: &Graph, fed: &[Feed]) -> Verdict {
        let formats = self.random.pick(&CacheFormats::ALL);
        let device = self.devices[0].clone();
        self.note(format!(
            "graph{id}: with_caches {formats:?}, describe, compile, set, run"
        ));
        let made = caught(|| {
            let changed = graph.with_caches(formats);
            let text = changed.describe();
            let is_stable = changed.with_caches(formats).describe() == text
                && changed
                    .states()
                    .map(|state| state.0)
                    .eq(graph.states().map(|state| state.0));
            let mut run = changed.compile(&device)?;
            for feed in fed {
                // Cached rows are zeros in every format.
                let zeros = Feed {
                    data: vec![0.0; feed.data.len()],
                    name: feed.name.clone(),
                    ..*feed
                };
                (if feed.kind == Kind::State {
                    &zeros
                } else {
                    feed
                })
                .set(&changed, &mut run)?;
            }
            run.run()?;
            let outputs: Vec<(String, usize)> = changed
                .outputs()
                .map(|(name, _, shape)| (name.to_owned(), shape.elements().unwrap_or(0)))
                .collect();
            let is_whole = outputs.iter().all(|(name, len)| {
                run.output(name).is_ok_and(|values| {
                    values.len() == *len && values.iter().all(|value| !value.is_nan())
                })
            });
            Ok((is_stable, is_whole))
        });
        match made
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error: tectum::Error| error.to_string())?
        {
            (true, true) => Ok(()),
            found => Err(format!("stable and whole: {found:?}\n{}", graph.describe())),
        }
    }

    /// Compares the gradient of one parameter's element with differences of the evaluated loss.
    fn gradients(
        &mut self,
        id: u64,
        graph: &Graph,
        values: &[Value],
        feeds: &[(Node, Tensor)],
        outputs: &[(String, usize)],
    ) -> Verdict {
        let output = self.below(outputs.len());
        let loss = &values[outputs[output].1];
        self.note(format!("graph{id}: gradients of {}", loss.node));
        let result =
            caught(|| graph.gradients(loss.node)).map_err(|panic| format!("panicked: {panic}"))?;
        if loss.shape != [1, 1] {
            return judged(result.map(|_| ()), Some(ErrorKind::Invalid)).map(|_| ());
        }
        let gradients = match result {
            Ok(gradients) => gradients,
            // An operation without a derivative reports it.
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let found = caught(|| gradients.evaluate(feeds))
            .map_err(|panic| format!("gradients: panicked: {panic}"))?
            .map_err(|error| error.to_string())?;
        let parameters: Vec<&Value> = values
            .iter()
            .filter(|value| {
                value
                    .fed
                    .as_ref()
                    .is_some_and(|(_, is_parameter)| *is_parameter)
            })
            .collect();
        if parameters.is_empty() {
            return Ok(());
        }
        let parameter = parameters[self.below(parameters.len())];
        let element = self.below(parameter.data.len());
        let name = parameter.fed.as_ref().map_or("", |(name, _)| name);
        let gradient_name = format!("grad.{name}");
        let place = gradients
            .outputs()
            .position(|(output, ..)| output == gradient_name)
            .ok_or(format!("no output {gradient_name}"))?;
        let at = |step: f64| {
            let mut moved: Vec<(Node, Tensor)> = feeds.to_vec();
            let mut data = parameter.data.clone();
            data[element] += step;
            let changed = Tensor::new(parameter.shape, data).expect("filled");
            moved
                .iter_mut()
                .filter(|(node, _)| *node == parameter.node)
                .for_each(|(_, tensor)| *tensor = changed.clone());
            graph
                .evaluate(&moved)
                .map(|outputs| outputs[output].data()[0])
                .unwrap_or(f64::NAN)
        };
        let slope = |step: f64| (at(step) - at(-step)) / (2.0 * step);
        let (coarse, fine) = (slope(1e-4), slope(1e-5));
        let gradient = found[place]
            .data()
            .get(element)
            .copied()
            .unwrap_or(f64::NAN);
        let scale = 1.0 + fine.abs() + loss.size;
        // Two steps that disagree indicate a kink.
        if (coarse - fine).abs() < 1e-5 * scale && (gradient - fine).abs() > 1e-4 * scale {
            let one_sided = [(at(1e-5) - at(0.0)) / 1e-5, (at(0.0) - at(-1e-5)) / 1e-5];
            if (one_sided[0] - one_sided[1]).abs() < 1e-3 * scale {
                return Err(format!(
                    "the gradient of {name}[{element}] is {gradient}, differences say {fine}\n{}",
                    graph.describe()
                ));
            }
        }
        Ok(())
    }

    /// Sets of the wrong length, name or type, and an output before anything ran.
    fn refused_sets(&mut self, run: &mut CompiledGraph, feed: &Feed, output: &str) -> Verdict {
        let long = [feed.floats(), vec![1.0]].concat();
        let numbers = vec![1; feed.data.len()];
        let refused = caught(|| {
            let by_kind = match feed.kind {
                Kind::Input => run.set_input(&feed.name, &long),
                Kind::Indices => run.set_input(&feed.name, &feed.floats()),
                Kind::Parameter => run.set_parameter(&feed.name, &long),
                Kind::State => run.set_state(&feed.name, &long),
            };
            let by_type = run.set_indices(
                if feed.kind == Kind::Indices {
                    "nothing"
                } else {
                    &feed.name
                },
                &numbers,
            );
            [
                by_kind,
                by_type,
                run.set_input("nothing", &long),
                run.set_state("nothing", &long),
                run.set_parameter("nothing", &long),
                run.set_words("nothing", &numbers),
                run.output(output).map(|_| ()),
            ]
        });
        for result in refused.map_err(|panic| format!("panicked: {panic}"))? {
            judged(result, Some(ErrorKind::Invalid))?;
        }
        Ok(())
    }

    fn run_graph(
        &mut self,
        id: u64,
        mut run: CompiledGraph,
        (graph, feeds): (&Graph, &[Feed]),
        values: &[Value],
        outputs: &[(String, usize)],
        text: &str,
    ) -> Verdict {
        for feed in feeds {
            self.note(format!("graph{id}: set {}", feed.name));
            if self.chance(6) {
                self.refused_sets(&mut run, feed, &outputs[0].0)?;
            }
            caught(|| feed.set(graph, &mut run))
                .map_err(|panic| format!("panicked: {panic}"))?
                .map_err(|error| error.to_string())?;
            if feed.kind == Kind::Parameter
                && run
                    .parameter(&feed.name)
                    .map_err(|error| error.to_string())?
                    != feed.floats()
            {
                return Err(format!("parameter {} is not what was set", feed.name));
            }
        }
        if run.layout() != &graph.parameter_layout() {
            return Err(format!("has the layout {:?}", run.layout()));
        }
        self.note(format!("graph{id}: run, outputs"));
        caught(|| run.run())
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| error.to_string())?;
        for (name, value) in outputs {
            let found: Vec<f64> = run
                .output(name)
                .map_err(|error| error.to_string())?
                .iter()
                .map(|&value| f64::from(value))
                .collect();
            near(
                &format!("graph{id}: output {name} of a run"),
                &values[*value],
                &found,
                text,
            )?;
        }
        Ok(())
    }
}

pub fn near(what: &str, value: &Value, found: &[f64], text: &str) -> Verdict {
    let bound = 8.0 * value.error + 1e-6 * (1.0 + value.size);
    let wrong =
        value.data.iter().zip(found).position(|(wanted, found)| {
            (wanted - found).is_nan() || (wanted - found).abs() > bound
        });
    match wrong {
        _ if value.data.len() != found.len() => Err(format!(
            "{what} has {} elements, {} expected\n{text}",
            found.len(),
            value.data.len()
        )),
        Some(place) => Err(format!(
            "{what}[{place}] is {}, {} ± {bound:e} expected\n{text}",
            found[place], value.data[place]
        )),
        None => Ok(()),
    }
}

/// How something is fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Input,
    Indices,
    Parameter,
    State,
}

/// A feed of a graph, with its name.
pub struct Feed {
    pub name: String,
    pub node: Node,
    pub shape: Shape,
    pub kind: Kind,
    pub data: Vec<f64>,
}

/// A graph with its model.
pub struct Ended<'a> {
    pub id: u64,
    pub graph: &'a Graph,
    pub fed: &'a [Feed],
    pub values: &'a [Value],
    pub outputs: &'a [(String, usize)],
    pub text: &'a str,
}

/// The feeds of a graph, in its own order; they must be the added ones.
fn fed(graph: &Graph, values: &[Value], extras: &[Extra]) -> Result<Vec<Feed>, String> {
    let known: Vec<(&String, Kind, &Vec<f64>)> = values
        .iter()
        .filter_map(|value| {
            value.fed.as_ref().map(|(name, is_parameter)| {
                (
                    name,
                    if *is_parameter {
                        Kind::Parameter
                    } else {
                        Kind::Input
                    },
                    &value.data,
                )
            })
        })
        .chain(
            extras
                .iter()
                .map(|extra| (&extra.name, extra.fed.kind(), &extra.data)),
        )
        .collect();
    let of = |kinds: &[Kind], (name, node, shape): (&str, Node, Shape)| {
        let found = known
            .iter()
            .find(|(other, kind, _)| *other == name && kinds.contains(kind));
        let (name, kind, data) = found.ok_or_else(|| format!("{name} {shape:?} was not added"))?;
        Ok(Feed {
            name: (*name).clone(),
            node,
            shape,
            kind: *kind,
            data: (*data).clone(),
        })
    };
    let inputs = graph
        .inputs()
        .map(|input| of(&[Kind::Input, Kind::Indices], input));
    let parameters = graph
        .parameters()
        .map(|parameter| of(&[Kind::Parameter], parameter));
    let feeds: Vec<Feed> = inputs
        .chain(parameters)
        .chain(graph.states().map(|state| of(&[Kind::State], state)))
        .collect::<Result<_, String>>()?;
    if feeds.len() == known.len() {
        Ok(feeds)
    } else {
        Err(format!("{} feeds of {} added", feeds.len(), known.len()))
    }
}

impl Fed {
    fn kind(self) -> Kind {
        match self {
            Fed::Indices => Kind::Indices,
            Fed::Parameter => Kind::Parameter,
            Fed::State => Kind::State,
        }
    }
}

impl Feed {
    pub fn floats(&self) -> Vec<f32> {
        self.data.iter().map(|value| *value as f32).collect()
    }

    /// Sets its contents; a state in a format other than f32 is zeros.
    fn set(&self, graph: &Graph, run: &mut CompiledGraph) -> tectum::Result<()> {
        let floats = self.floats();
        match self.kind {
            Kind::Input => run.set_input(&self.name, &floats),
            Kind::Indices => run.set_indices(
                &self.name,
                &floats.iter().map(|value| *value as u32).collect::<Vec<_>>(),
            ),
            Kind::Parameter => run.set_parameter(&self.name, &floats),
            Kind::State if graph.dtype(self.node)? == DType::U32 => {
                run.set_words(&self.name, &vec![0; graph.state_words(self.node)?])
            }
            Kind::State => run.set_state(&self.name, &floats),
        }
    }
}
