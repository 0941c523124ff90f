//! Maxima and means over windows of space.

mod gradients;

use tectum::{DType, PoolDivisor, Pooling, Window};

use super::convolution::{
    image, leaves_out, parse_triple, parse_window, reached, space, window_text,
};
use super::{
    Adjoints, Call, CallText, Cow, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// Each window of each channel becomes one element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    pub x: Node,
    pub kind: PoolKind,
    pub window: Window,
}

/// What a window becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    /// Its greatest element.
    Max,
    /// The place of the first greatest one in its channel, counted row-major (i32); −1 if the
    /// window reads only padding.
    MaxPlace,
    /// The mean of its elements inside the input.
    MeanInside,
    /// Its sum divided by the elements inside the input or its padding, of which only this much
    /// after the input counts.
    MeanPadded {
        /// Elements after the input that count.
        after: [usize; 3],
    },
}

impl Pool {
    fn settings(&self, shape: Shape) -> Pooling {
        let sizes = image(shape);
        Pooling {
            channels: sizes[0] * sizes[1],
            size_in: space(sizes),
            window: self.window,
        }
    }

    /// Elements that count for a mean at a place of the output.
    fn count(&self, place: [usize; 3], size_in: [usize; 3]) -> f64 {
        let inside = |before: [usize; 3], after: [usize; 3]| {
            let along = |axis: usize| {
                (0..self.window.kernel[axis])
                    .filter(|tap| {
                        let at = (place[axis] * self.window.stride[axis]
                            + tap * self.window.dilation[axis])
                            as i64
                            - self.window.pad_before[axis] as i64;
                        at >= -(before[axis] as i64) && at < (size_in[axis] + after[axis]) as i64
                    })
                    .count()
            };
            (along(0) * along(1) * along(2)) as f64
        };
        match self.kind {
            PoolKind::MeanPadded { after } => inside(self.window.pad_before, after),
            _ => inside([0; 3], [0; 3]),
        }
    }
}

impl Op for Pool {
    fn arguments(&self, operands: String) -> String {
        let counts = match self.kind {
            PoolKind::MeanPadded { after } => {
                format!(", counts {}", after.map(|size| size.to_string()).join(" "))
            }
            _ => String::new(),
        };
        format!("{operands}{}{counts}", window_text(&self.window))
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Is(if self.kind == PoolKind::MaxPlace {
            DType::I32
        } else {
            DType::F32
        })
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let (size_in, size_out, [planes, rows, columns]) = (
            space(image(x.shape)),
            space(image(shape)),
            self.window.kernel,
        );
        let (volume, pixels) = (
            size_in.iter().product::<usize>(),
            size_out.iter().product::<usize>(),
        );
        Ok(Tensor::from_fn(shape, |element| {
            let (channel, pixel) = (element / pixels, element % pixels);
            let place = [
                pixel / size_out[2] / size_out[1],
                pixel / size_out[2] % size_out[1],
                pixel % size_out[2],
            ];
            let taps = (0..planes).flat_map(|plane| {
                (0..rows).flat_map(move |row| (0..columns).map(move |column| [plane, row, column]))
            });
            let (mut best, mut best_place, mut sum) = (f64::NEG_INFINITY, -1.0, 0.0);
            for inside in taps.filter_map(|tap| reached(&self.window, place, tap, size_in)) {
                let at = (inside[0] * size_in[1] + inside[1]) * size_in[2] + inside[2];
                let value = x.data[channel * volume + at];
                sum += value;
                if value > best || value.is_nan() || best_place < 0.0 {
                    (best, best_place) = (value, at as f64);
                }
            }
            match self.kind {
                PoolKind::Max => best,
                PoolKind::MaxPlace => best_place,
                _ => match self.count(place, size_in) {
                    0.0 => 0.0,
                    count => sum / count,
                },
            }
        }))
    }

    /// Of a maximum to its place, the first one of equal elements; of a mean to all its elements,
    /// divided.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        match self.kind {
            PoolKind::MaxPlace => Ok(()),
            PoolKind::Max => pass.give(self.x, |pass| self.give_places(g, &mut pass.builder)),
            PoolKind::MeanInside | PoolKind::MeanPadded { .. } => {
                pass.give(self.x, |pass| self.give_windows(g, &mut pass.builder))
            }
        }
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let (x, settings) = (
            lowering.views[&self.x],
            self.settings(lowering.shape(self.x)),
        );
        match self.kind {
            PoolKind::Max => lowering.plan.max_pool(x, y, None, &settings),
            PoolKind::MaxPlace => {
                let greatest = lowering.plan.temp(DType::F32, y.len());
                lowering.plan.max_pool(x, greatest, Some(y), &settings)
            }
            PoolKind::MeanInside => {
                lowering
                    .plan
                    .average_pool(x, y, &settings, PoolDivisor::Inside)
            }
            PoolKind::MeanPadded { after } => lowering.plan.average_pool(
                x,
                y,
                &settings,
                PoolDivisor::Padded { pad_after: after },
            ),
        }
    }
}

impl Call for Pool {
    const NAME: &'static str = "pool";

    fn name(&self) -> Cow<'static, str> {
        match self.kind {
            PoolKind::Max => "max_pool".into(),
            PoolKind::MaxPlace => "max_pool_place".into(),
            PoolKind::MeanInside => "mean_pool".into(),
            PoolKind::MeanPadded { .. } => "mean_pool_padded".into(),
        }
    }

    fn is_named(name: &str) -> bool {
        matches!(
            name,
            "max_pool" | "max_pool_place" | "mean_pool" | "mean_pool_padded"
        )
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let kind = match text.name {
            "max_pool" => PoolKind::Max,
            "max_pool_place" => PoolKind::MaxPlace,
            "mean_pool" => PoolKind::MeanInside,
            _ => PoolKind::MeanPadded {
                after: parse_triple(text, "counts")?,
            },
        };
        builder.pool(text.node(0)?, kind, parse_window(text)?)
    }
}

impl GraphBuilder {
    /// Adds the maximum, its place, or the mean of each window of each channel.
    ///
    /// # Shapes
    /// `x` [N, C, ..] with one to three axes of space, which are the last axes of the window; gives
    /// [N, C, ..] with the sizes of [`Window::size_out`].
    /// # Errors
    /// `Invalid` if the shape does not fit, a dimension is a letter, more padding counts than there
    /// is, or the node is not of this graph; as [`Window::size_out`].
    pub fn pool(&mut self, x: Node, kind: PoolKind, window: Window) -> Result<Node> {
        let operation = Pool { x, kind, window };
        let (name, shape) = (operation.name(), self.shape("pool", x)?);
        let sizes = self.image_sizes(&name, shape)?;
        let unused = 5 - shape.rank();
        let is_counted =
            |after: [usize; 3]| (0..3).all(|axis| after[axis] <= window.pad_after[axis]);
        let counts_fit = if let PoolKind::MeanPadded { after } = kind {
            is_counted(after)
        } else {
            true
        };
        if !leaves_out(&window, unused) || !counts_fit {
            return Err(self.fault(format_args!("{name}: {shape:?} with {window:?}")));
        }
        let size_out = window
            .size_out(space(sizes))
            .map_err(|error| self.fault(format_args!("{name}: {error}")))?;
        let mut dims: Vec<Dim> = vec![sizes[0].into(), sizes[1].into()];
        dims.extend(size_out[unused..].iter().map(|size| Dim::Size(*size)));
        Ok(self.push(operation, Shape::of(&dims)))
    }
}
