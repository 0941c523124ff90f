//! Values one after another along an axis.

use tectum::operation::product::panel_format::PanelFormat;

use super::{
    Adjoints, Call, CallText, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// One after another along an axis.
#[derive(Debug, Clone)]
pub(crate) struct Concat {
    pub parts: Vec<Node>,
    pub axis: usize,
}

impl Op for Concat {
    fn arguments(&self, operands: String) -> String {
        format!("{operands}, axis {}", self.axis)
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        self.parts.iter_mut().collect()
    }

    /// That of its parts: words of panels may be concatenated like floats.
    fn element(&self) -> ValueType {
        ValueType::Of(self.parts[0])
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let [outer, ..] = shape.around(self.axis);
        let mut data = Vec::with_capacity(shape.len());
        for index in 0..outer {
            for part in &self.parts {
                let part = &values[part].data;
                let chunk = part.len() / outer;
                data.extend_from_slice(&part[index * chunk..][..chunk]);
            }
        }
        Ok(Tensor { shape, data })
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let mut start = 0;
        for &part in &self.parts {
            let len = pass.size(part, self.axis)?;
            pass.give(part, |pass| pass.builder.slice(g, self.axis, start, len))?;
            start += len;
        }
        Ok(())
    }

    fn is_view(&self) -> bool {
        true
    }

    /// Contiguous parts.
    fn alias(&self, lowering: &Lowering<'_>, shape: Shape) -> Option<View> {
        let [outer, ..] = shape.around(self.axis);
        let mut views = self
            .parts
            .iter()
            .map(|part| lowering.views.get(part).copied());
        let first = views.next()??;
        views
            .try_fold(first, |whole, part| whole.joined(part?))
            .filter(|_| outer == 1)
    }

    /// Pairwise, from the first on.
    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let [outer, ..] = shape.around(self.axis);
        let mut whole = lowering.views[&self.parts[0]];
        for (index, part) in self.parts.iter().enumerate().skip(1) {
            let part = lowering.views[part];
            let is_last = index + 1 == self.parts.len();
            let to = if is_last {
                y
            } else {
                lowering.plan.temp(y.dtype(), whole.len() + part.len())
            };
            lowering.plan.concat(whole, part, to, outer)?;
            whole = to;
        }
        Ok(())
    }
}

impl Call for Concat {
    const NAME: &'static str = "concat";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let parts: Result<Vec<Node>> = (0..text.arguments.len().saturating_sub(1))
            .map(|index| text.node(index))
            .collect();
        builder.concat(&parts?, text.number("axis")?)
    }
}

impl GraphBuilder {
    /// Concatenates values along an axis.
    ///
    /// # Errors
    /// `Invalid` if there are no values, another axis differs, this one is a letter or does not
    /// exist, or a node is not of this graph.
    pub fn concat(&mut self, parts: &[Node], axis: usize) -> Result<Node> {
        let Some(&first) = parts.first() else {
            return Err(self.fault(format_args!("concat: no operands")));
        };
        let format = self
            .graph()
            .panel_format(first)
            .filter(|format| *format != PanelFormat::F32);
        let shape_of = |part: Node| match format {
            Some(_) if self.graph().panel_format(part) == format => self.graph().shape(part),
            _ => self.typed("concat", part).map(|(shape, _)| shape),
        };
        let shape = shape_of(first)?;
        let dtype = self.graph().dtype(first)?;
        self.check_axis("concat", shape, axis)?;
        let mut total = 0;
        for &part in parts {
            if self.graph().dtype(part)? != dtype {
                return Err(self.fault(format_args!(
                    "concat: {} and {}: one type is needed",
                    dtype.wgsl(),
                    self.graph().dtype(part)?.wgsl()
                )));
            }
            let part = shape_of(part)?;
            let others_agree =
                part.rank() == shape.rank() && part.with(axis, 1) == shape.with(axis, 1);
            match part.dims().get(axis) {
                Some(Dim::Size(size)) if others_agree => total += size,
                _ => {
                    return Err(self.fault(format_args!(
                        "concat: {shape:?} and {part:?} along axis {axis}"
                    )));
                }
            }
        }
        if parts.len() == 1 {
            return Ok(first);
        }
        let shape = shape.with(axis, total);
        self.check_shape("concat", shape)?;
        Ok(self.push(
            Concat {
                parts: parts.to_vec(),
                axis,
            },
            shape,
        ))
    }
}
