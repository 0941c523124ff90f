//! Nodes of networks over sequences: row numbers, gathers, rotary positions, attention with and
//! without caches, dense layers; and shapes with letters.

use tectum::{Activation, CacheFormat, CacheFormats, ErrorKind};
use tectum_graph::{Dim, Graph, GraphBuilder, Heads, Node, Tensor};

use super::graphs::{Added, UNIT, Value, near};
use super::world::{Verdict, World, caught, judged};

/// Kinds of named feeds other than values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    Indices,
    Parameter,
    State,
}

/// A feed that operations on values must not read.
#[derive(Debug, Clone)]
pub struct Extra {
    pub name: String,
    pub fed: Fed,
    pub data: Vec<f64>,
}

/// Operands of an attention: heads, and the rows of an item's queries, keys and values.
struct Attending {
    heads: Heads,
    batch: usize,
    queries: usize,
    keys: usize,
    k: Vec<f64>,
    v: Vec<f64>,
}

fn floats(data: &[f64]) -> Vec<f32> {
    data.iter().map(|value| *value as f32).collect()
}

impl World {
    /// An operation on a sequence; none if an operand was refused as required.
    pub fn network(&mut self, place: usize, x: &Value) -> Result<Option<Added>, String> {
        Ok(match self.random.below(7) {
            0 => self.rotary_node(place, x)?,
            1 => self.gather_node(place, x)?,
            2 => Some(self.attention_node(x)),
            3 | 4 => self.cached_node(place, x)?,
            5 => Some(self.dense_node(place, x)),
            _ => Some(self.axis_node(x)),
        })
    }

    /// Row numbers, most below a count; occasionally with a taken name, or none.
    pub fn indices_of(
        &mut self,
        place: usize,
        shape: [usize; 2],
        below: usize,
    ) -> Result<Option<(Node, Vec<f64>)>, String> {
        let taken = self.graphs[place]
            .values
            .iter()
            .find_map(|value| value.fed.as_ref().map(|(name, _)| name.clone()));
        let (name, shape, wanted) = match (self.random.below(12), taken) {
            (0, Some(name)) => (name, shape, Some(ErrorKind::Invalid)),
            (1, _) => (
                format!("n{}", self.calls),
                [0, shape[1]],
                Some(ErrorKind::Invalid),
            ),
            _ => (format!("n{}", self.calls), shape, None),
        };
        let data: Vec<f64> = (0..shape[0] * shape[1])
            .map(|_| self.below(below) as f64)
            .collect();
        self.note(format!(
            "graph{}: indices {name} {shape:?} {data:?}",
            self.graphs[place].id
        ));
        let builder = &mut self.graphs[place].builder;
        let result = caught(|| {
            if shape[0] == 1 {
                builder.indices(&name, [shape[1]])
            } else {
                builder.indices(&name, shape)
            }
        });
        let Some(node) = judged(
            result.map_err(|panic| format!("panicked: {panic}"))?,
            wanted,
        )?
        else {
            return Ok(None);
        };
        self.graphs[place].extras.push(Extra {
            name,
            fed: Fed::Indices,
            data: data.clone(),
        });
        Ok(Some((node, data)))
    }

    fn rotary_node(&mut self, place: usize, x: &Value) -> Result<Option<Added>, String> {
        let (node, [rows, cols]) = (x.node, x.shape);
        let Some((positions, places)) = self.indices_of(place, [1, rows], 50)? else {
            return Ok(None);
        };
        let heads = if self.chance(8) {
            self.below(4)
        } else {
            1 + self.below(2)
        };
        let base = self
            .random
            .pick(&[100.0f32, 100.0, 10_000.0, 10_000.0, 1.0, f32::NAN]);
        let fits = heads > 0 && cols.is_multiple_of(2 * heads) && base > 1.0;
        let half = if fits { cols / heads / 2 } else { 1 };
        let one = |at: usize| {
            let (row, col) = (at / cols, at % cols % (2 * half));
            let frequency =
                f64::from(f64::from(base).powf(-((col % half) as f64) / half as f64) as f32);
            let (sine, cosine) = (places[row] * frequency).sin_cos();
            let (here, other) = (
                x.data[at],
                x.data[if col < half { at + half } else { at - half }],
            );
            if col < half {
                here * cosine - other * sine
            } else {
                here * cosine + other * sine
            }
        };
        let data = if fits {
            (0..rows * cols).map(one).collect()
        } else {
            vec![]
        };
        let add = move |g: &mut GraphBuilder| {
            let sequence = g.reshape(node, [1, rows, cols])?;
            let turned = g.rotary(sequence, positions, heads, base)?;
            g.reshape(turned, [rows, cols])
        };
        let error = 2.0 * x.error + 256.0 * UNIT * x.size;
        let wanted = (!fits).then_some(ErrorKind::Invalid);
        Ok(Some((
            format!("rotary {node} {positions} {heads} heads base {base}"),
            wanted,
            Box::new(add),
            [rows, cols],
            data,
            error,
        )))
    }

    fn gather_node(&mut self, place: usize, x: &Value) -> Result<Option<Added>, String> {
        let (table, [rows, cols]) = (x.node, x.shape);
        let (outer, count) = (1 + self.below(2), 1 + self.below(4));
        // A missing row is zeros.
        let Some((indices, picked)) = self.indices_of(place, [outer, count], rows + 1)? else {
            return Ok(None);
        };
        let data = picked
            .iter()
            .flat_map(|row| {
                (0..cols).map(|col| {
                    x.data
                        .get(*row as usize * cols + col)
                        .copied()
                        .unwrap_or(0.0)
                })
            })
            .collect();
        let is_swapped = self.chance(10);
        let add = move |g: &mut GraphBuilder| {
            let picked = if is_swapped {
                g.gather(indices, table)?
            } else {
                g.gather(table, indices)?
            };
            g.reshape(picked, [outer * count, cols])
        };
        let wanted = is_swapped.then_some(ErrorKind::Invalid);
        Ok(Some((
            format!("gather {table} {indices} swapped {is_swapped}"),
            wanted,
            Box::new(add),
            [outer * count, cols],
            data,
            x.error,
        )))
    }

    /// Heads that divide the columns of a value, occasionally others; with keys and values that are
    /// multiples of a quarter.
    fn attending(&mut self, x: &Value, is_causal: bool) -> (Attending, bool) {
        let [rows, cols] = x.shape;
        let (batch, queries) = if self.chance(2) { (1, rows) } else { (rows, 1) };
        let (mut count, mut kv) = (
            if cols.is_multiple_of(2) {
                1 + self.below(2)
            } else {
                1
            },
            1,
        );
        if count == 2 && self.chance(2) {
            kv = 2;
        }
        let mut width = cols / count;
        let mut scale = self.random.pick(&[0.5f32, 1.0, -0.25]);
        match self.random.below(30) {
            0 => count = self.extreme(),
            1 => (count, kv) = (count, 3),
            2 => width = self.extreme(),
            3 => scale = f32::NAN,
            4 => kv = 0,
            _ => {}
        }
        let fits = count.checked_mul(width) == Some(cols)
            && kv > 0
            && count > 0
            && count.is_multiple_of(kv)
            && scale.is_finite();
        let keys = queries + self.below(4);
        let len = if fits {
            batch * keys * kv * width
        } else {
            batch * keys * cols
        };
        let (k, v) = (self.small(len), self.small(len));
        (
            Attending {
                heads: Heads {
                    count,
                    kv,
                    width,
                    scale,
                    causal: is_causal,
                },
                batch,
                queries,
                keys,
                k,
                v,
            },
            fits,
        )
    }

    fn attention_node(&mut self, x: &Value) -> Added {
        let causal = self.chance(2);
        let (given, mut fits) = self.attending(x, causal);
        let Attending {
            heads, batch, keys, ..
        } = given;
        let columns = if fits {
            heads.kv * heads.width
        } else {
            x.shape[1]
        };
        let mut mask: Option<Vec<f64>> = self.chance(2).then(|| {
            (0..batch * keys)
                .map(|_| self.random.pick(&[0.0, 0.0, -1.5, f64::NEG_INFINITY]))
                .collect()
        });
        // The first key of an item is seen by every query, so that each sees one.
        mask.iter_mut()
            .for_each(|mask| mask.chunks_mut(keys).for_each(|mask| mask[0] = 0.0));
        let long = usize::from(mask.is_some() && self.chance(15));
        fits &= long == 0;
        let queries = given.queries;
        let seen = |_: usize, query: usize| {
            if causal {
                query + 1 + keys - queries
            } else {
                keys
            }
        };
        let (data, error) = if fits {
            given.made(x, mask.as_deref(), seen)
        } else {
            (vec![], 0.0)
        };
        let (node, [rows, cols]) = (x.node, x.shape);
        let text = format!(
            "attention {node} {batch} x [{queries} over {keys}] {heads:?} mask {mask:?}, {long} too long"
        );
        let [k, v] = [floats(&given.k), floats(&given.v)];
        let add = move |g: &mut GraphBuilder| {
            let q = g.reshape(node, [batch, queries, cols])?;
            let (k, v) = (
                g.constant(&k, [batch, keys, columns])?,
                g.constant(&v, [batch, keys, columns])?,
            );
            let mask = mask.map(|mask| {
                let data = [floats(&mask), vec![0.0; long * batch]].concat();
                g.constant(&data, [batch, keys + long])
            });
            let y = g.attention([q, k, v], mask.transpose()?, heads)?;
            g.reshape(y, [rows, cols])
        };
        (
            text,
            (!fits).then_some(ErrorKind::Invalid),
            Box::new(add),
            [rows, cols],
            data,
            error,
        )
    }

    /// Attention over caches of a format: with cached rows for f32, with rows of zeros for others.
    fn cached_node(&mut self, place: usize, x: &Value) -> Result<Option<Added>, String> {
        let causal = !self.chance(20);
        let (given, mut fits) = self.attending(x, causal);
        let Attending {
            heads,
            batch,
            queries,
            ..
        } = given;
        let columns = if fits {
            heads.kv * heads.width
        } else {
            x.shape[1]
        };
        fits &= causal;
        let room = 1 + queries + self.below(5);
        let formats = match self.random.below(20) {
            0 => [(); 2].map(|()| self.random.pick(&CacheFormat::ALL)),
            _ => self.random.pick(&CacheFormats::ALL).each(),
        };
        fits &= CacheFormats::ALL.iter().any(|pair| pair.each() == formats);
        let spans: Vec<[usize; 2]> = (0..batch)
            .map(|_| [self.below(room), 1 + self.below(queries)])
            .collect();
        let is_float = formats == CacheFormats::F32.each();
        let caches = [(); 2].map(|()| {
            if is_float {
                self.small(batch * room * columns)
            } else {
                vec![0.0; batch * room * columns]
            }
        });
        let names = ["keys", "values", "spans"].map(|side| format!("{side}{}", self.calls));
        self.note(format!(
            "graph{}: states {names:?} [{batch}, {room}, {columns}] {formats:?}, spans {spans:?}",
            self.graphs[place].id
        ));
        let builder = &mut self.graphs[place].builder;
        let states = caught(|| {
            let states = [0, 1]
                .map(|side| builder.state_as(&names[side], formats[side], [batch, room, columns]));
            let taken = builder.state(&names[0], [1]).map(|_| ());
            (states, taken, builder.indices(&names[2], [batch, 2]))
        });
        let ([k_cache, v_cache], taken, spans_node) =
            states.map_err(|panic| format!("panicked: {panic}"))?;
        judged(taken, Some(ErrorKind::Invalid))?;
        let [k_cache, v_cache, spans_node] =
            [k_cache, v_cache, spans_node].map(|node| node.map_err(|error| error.to_string()));
        let (k_cache, v_cache, spans_node) = (k_cache?, v_cache?, spans_node?);
        let extras = &mut self.graphs[place].extras;
        extras.extend(names[..2].iter().zip(&caches).map(|(name, data)| Extra {
            name: name.clone(),
            fed: Fed::State,
            data: data.clone(),
        }));
        let words = spans.iter().flatten().map(|word| *word as f64).collect();
        extras.push(Extra {
            name: names[2].clone(),
            fed: Fed::Indices,
            data: words,
        });
        let is_once = !self.chance(15);
        let caches_given = if is_once {
            [k_cache, v_cache]
        } else {
            [k_cache; 2]
        };
        fits &= is_once;
        let [k, v] = [&given.k, &given.v].map(|rows| rows[..batch * queries * columns].to_vec());
        let (data, error) = if fits {
            given
                .cached([&k, &v], [&caches[0], &caches[1]], &spans, room)
                .made(x, None, |item, query| seen(spans[item], query, room))
        } else {
            (vec![], 0.0)
        };
        let (node, [rows, cols]) = (x.node, x.shape);
        let add = move |g: &mut GraphBuilder| {
            let q = g.reshape(node, [batch, queries, cols])?;
            let (k, v) = (
                g.constant(&floats(&k), [batch, queries, columns])?,
                g.constant(&floats(&v), [batch, queries, columns])?,
            );
            let y = g.attention_cached([q, k, v], caches_given, spans_node, heads)?;
            g.reshape(y, [rows, cols])
        };
        let text = format!(
            "attention_cached {node} {batch} x {queries} {heads:?} caches {caches_given:?}"
        );
        Ok(Some((
            text,
            (!fits).then_some(ErrorKind::Invalid),
            Box::new(add),
            [rows, cols],
            data,
            error,
        )))
    }

    fn dense_node(&mut self, place: usize, x: &Value) -> Added {
        let (node, [rows, inner]) = (x.node, x.shape);
        let width = if self.chance(12) {
            0
        } else {
            1 + self.below(5)
        };
        let name = format!("d{}", self.below(3));
        let activation = self.random.pick(&[
            Activation::None,
            Activation::Relu,
            Activation::Tanh,
            Activation::Sigmoid,
        ]);
        let is_taken = self.graphs[place]
            .extras
            .iter()
            .any(|extra| extra.name == format!("{name}.weight"));
        let fits = width > 0 && !is_taken;
        let (weights, bias) = (self.small(inner * width), self.small(width));
        let product = |at: usize| {
            (0..inner)
                .map(|i| x.data[at / width * inner + i] * weights[i * width + at % width])
                .sum::<f64>()
        };
        let data = if fits {
            (0..rows * width)
                .map(|at| activation.reference(product(at) + bias[at % width]))
                .collect()
        } else {
            vec![]
        };
        if fits {
            let entries = [("weight", weights), ("bias", bias)];
            let extras = entries.map(|(part, data)| Extra {
                name: format!("{name}.{part}"),
                fed: Fed::Parameter,
                data,
            });
            self.graphs[place].extras.extend(extras);
        }
        let size = 2.0 * (1.0 + inner as f64 * x.size);
        let error = 1.2 * (2.0 * inner as f64 * x.error + (inner + 3) as f64 * UNIT * size)
            + 16.0 * UNIT * (1.0 + size);
        let text = format!("dense {name} {node} {width} {activation:?}");
        let add = move |g: &mut GraphBuilder| g.dense(&name, node, width, activation);
        (
            text,
            (!fits).then_some(ErrorKind::Invalid),
            Box::new(add),
            [rows, width],
            data,
            error,
        )
    }

    /// Along the axis that other nodes do not use.
    fn axis_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let column = |col: usize| (0..rows).map(move |row| row * cols + col);
        match self.random.below(4) {
            0 => {
                let sums = x.data.chunks(cols).map(|row| row.iter().sum()).collect();
                let error = cols as f64 * (x.error + UNIT * cols as f64 * x.size);
                (
                    format!("sum_over_columns {node}"),
                    None,
                    Box::new(move |g| g.sum_over_columns(node)),
                    [rows, 1],
                    sums,
                    error,
                )
            }
            1 => {
                let sums = (0..cols)
                    .map(|col| column(col).map(|at| x.data[at]).sum())
                    .collect();
                let error = rows as f64 * (x.error + UNIT * rows as f64 * x.size);
                let add = move |g: &mut GraphBuilder| {
                    // In three dimensions the axis is first moved last.
                    let deep = g.reshape(node, [1, rows, cols])?;
                    let sum = g.sum_axis(deep, 1)?;
                    g.reshape(sum, [1, cols])
                };
                (
                    format!("sum_axis {node} of three"),
                    None,
                    Box::new(add),
                    [1, cols],
                    sums,
                    error,
                )
            }
            2 => {
                let most: Vec<f64> = (0..cols)
                    .map(|col| {
                        column(col)
                            .map(|at| x.data[at])
                            .fold(f64::NEG_INFINITY, f64::max)
                    })
                    .collect();
                let total: Vec<f64> = (0..cols)
                    .map(|col| column(col).map(|at| (x.data[at] - most[col]).exp()).sum())
                    .collect();
                let soft = (0..rows * cols)
                    .map(|at| (x.data[at] - most[at % cols]).exp() / total[at % cols])
                    .collect();
                let error = 2.0 * x.error + (64.0 + 2.0 * x.size) * UNIT;
                (
                    format!("softmax {node} axis 0"),
                    None,
                    Box::new(move |g| g.softmax(node, 0)),
                    [rows, cols],
                    soft,
                    error,
                )
            }
            _ => {
                let count = 1 + self.below(3);
                let data = x
                    .data
                    .chunks(cols)
                    .flat_map(|row| row.repeat(count))
                    .collect();
                (
                    format!("concat {count} x {node} axis 1"),
                    None,
                    Box::new(move |g| g.concat(&vec![node; count], 1)),
                    [rows, cols * count],
                    data,
                    x.error,
                )
            }
        }
    }

    /// A graph of an unknown number of rows, bound to several.
    pub fn lettered_graph(&mut self) -> Verdict {
        let [inner, width] = [1 + self.below(5), 1 + self.below(5)];
        let weights = self.small(inner * width);
        let lower = self.chance(10);
        self.note(format!("lettered graph [T, {inner}] · [{inner}, {width}]"));
        let built = caught(|| {
            let mut g = GraphBuilder::new();
            let x = g.input(
                "x",
                [Dim::from(if lower { 't' } else { 'T' }), inner.into()],
            )?;
            let w = g.constant(&floats(&weights), [inner, width])?;
            let product = g.matmul(x, w)?;
            let y = g.relu(product)?;
            g.output("y", y)?;
            Ok((x, g.finish()?))
        });
        let Some((x, graph)) = judged(
            built.map_err(|panic| format!("panicked: {panic}"))?,
            lower.then_some(ErrorKind::Invalid),
        )?
        else {
            return Ok(());
        };
        let device = self.devices[0].clone();
        let tensor =
            Tensor::new([2, inner], vec![0.0; 2 * inner]).map_err(|error| error.to_string())?;
        self.note("lettered graph: compile, evaluate, bind mistakes");
        let refused = caught(|| {
            [
                graph.compile(&device).map(|_| ()),
                graph.evaluate(&[(x, tensor)]).map(|_| ()),
                graph.bind(&[('Z', 3)]).map(|_| ()),
            ]
        });
        for result in refused.map_err(|panic| format!("panicked: {panic}"))? {
            judged(result, Some(ErrorKind::Invalid))?;
        }
        for _ in 0..2 {
            let rows = if self.chance(4) {
                self.extreme()
            } else {
                1 + self.below(6)
            };
            let is_counted = rows > 0
                && rows
                    .checked_mul(inner.max(width))
                    .is_some_and(|count| count <= u32::MAX as usize);
            let wanted = (!is_counted).then_some(ErrorKind::Invalid);
            let Some(bound) = self.expect(
                format_args!("lettered graph: bind T = {rows}"),
                wanted,
                || graph.bind(&[('T', rows)]),
            )?
            else {
                continue;
            };
            if rows < 100 {
                self.run_bound(&bound, &weights, [rows, inner, width])?;
            }
        }
        Ok(())
    }

    fn run_bound(
        &mut self,
        graph: &Graph,
        weights: &[f64],
        [rows, inner, width]: [usize; 3],
    ) -> Verdict {
        let x = self.small(rows * inner);
        let one = |at: usize| {
            (0..inner)
                .map(|i| x[at / width * inner + i] * weights[i * width + at % width])
                .sum::<f64>()
                .max(0.0)
        };
        let data: Vec<f64> = (0..rows * width).map(one).collect();
        let device = self.devices[0].clone();
        self.note(format!(
            "bound graph of {rows} rows: compile, set_input, run, output"
        ));
        let found = caught(|| {
            let mut run = graph.compile(&device)?;
            run.set_input("x", &floats(&x))?;
            run.run()?;
            run.output("y").map(<[f32]>::to_vec)
        });
        let found = found
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| error.to_string())?;
        let node = graph.output("y").map_err(|error| error.to_string())?;
        let value = Value {
            node,
            shape: [rows, width],
            size: 4.0 * inner as f64,
            error: 0.0,
            data,
            fed: None,
        };
        near(
            "a bound graph's output",
            &value,
            &found.into_iter().map(f64::from).collect::<Vec<_>>(),
            &graph.describe(),
        )
    }
}

/// Rows of a cache that a query sees.
fn seen([kept, new]: [usize; 2], query: usize, room: usize) -> usize {
    (kept + query + 1).min(kept + new).min(room)
}

impl Attending {
    /// The same over the rows in the caches after the new ones are written.
    fn cached(
        &self,
        new: [&[f64]; 2],
        caches: [&[f64]; 2],
        spans: &[[usize; 2]],
        room: usize,
    ) -> Attending {
        let columns = self.heads.kv * self.heads.width;
        let [k, v] = [0, 1].map(|side| {
            let mut rows = caches[side].to_vec();
            for (item, [kept, count]) in spans.iter().enumerate() {
                let added = (*count).min(room - kept);
                let from = &new[side][item * self.queries * columns..][..added * columns];
                rows[(item * room + kept) * columns..][..added * columns].copy_from_slice(from);
            }
            rows
        });
        Attending {
            k,
            v,
            keys: room,
            ..*self
        }
    }

    /// The result of each query over the keys that it sees, and the error of f32.
    fn made(
        &self,
        x: &Value,
        mask: Option<&[f64]>,
        seen: impl Fn(usize, usize) -> usize,
    ) -> (Vec<f64>, f64) {
        let Heads {
            count,
            kv,
            width,
            scale,
            ..
        } = self.heads;
        let mut data = Vec::new();
        let mut largest = 0.0f64;
        for (item, query, head) in (0..self.batch).flat_map(|item| {
            (0..self.queries).flat_map(move |query| (0..count).map(move |head| (item, query, head)))
        }) {
            let q =
                &x.data[(item * self.queries + query) * count * width + head * width..][..width];
            let at =
                |key: usize| (item * self.keys + key) * kv * width + head / (count / kv) * width;
            let score = |key: usize| {
                let product: f64 = q.iter().zip(&self.k[at(key)..]).map(|(q, k)| q * k).sum();
                f64::from(scale) * product + mask.map_or(0.0, |mask| mask[item * self.keys + key])
            };
            let scores: Vec<f64> = (0..seen(item, query)).map(score).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            largest = scores
                .iter()
                .filter(|score| score.is_finite())
                .fold(largest, |largest, score| largest.max(score.abs()));
            let total: f64 = weights.iter().sum();
            data.extend((0..width).map(|col| {
                weights
                    .iter()
                    .enumerate()
                    .map(|(key, weight)| weight * self.v[at(key) + col])
                    .sum::<f64>()
                    / total
            }));
        }
        // Keys and values are at most 2.
        let score = f64::from(scale.abs())
            * 2.0
            * width as f64
            * (x.error + (width + 2) as f64 * UNIT * x.size)
            + 4.0 * UNIT * (1.0 + largest);
        (data, (4.0 * score.exp_m1() + 128.0 * UNIT).min(4.0))
    }
}
