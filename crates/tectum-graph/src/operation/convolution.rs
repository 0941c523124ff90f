//! Convolutions and transposed convolutions over up to three axes of space.

pub(super) mod gradients;

use tectum::operation::product::panel_format::PANEL;
use tectum::{Activation, Convolution as Settings, FilterLayout, TransposedConvolution, Window};

use self::gradients::unread;
use super::activate::{activation_name, activation_named};
use super::{
    Adjoints, Call, CallText, Cow, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    Values, View, no_derivative_of_fused, nodes,
};
use crate::parse::{fault, parse_number};

/// `x` [N, C, D, H, W] and `w` of as many dimensions; missing axes of space count as 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convolution {
    pub x: Node,
    pub w: Node,
    pub bias: Option<Node>,
    pub groups: usize,
    pub window: Window,
    /// Elements added at the end of each axis of a transposed convolution; none for a plain one.
    pub transposed: Option<[usize; 3]>,
    /// Added before the activation, of the shape of the result; only
    /// [`Graph::fuse`](crate::Graph::fuse) sets it.
    pub residual: Option<Node>,
    /// Applied last; only [`Graph::fuse`](crate::Graph::fuse) sets it.
    pub activation: Activation,
    /// How `w` is stored: packed [matrices, ⌈filters of a group / 16⌉, elements of a filter, 16];
    /// only [`Graph::pack_filters`](crate::Graph::pack_filters) sets it.
    pub layout: FilterLayout,
    /// Whether sums of whole numbers are exact: no layout whose transforms are rounded.
    pub is_exact: bool,
}

/// The matrices of packed filters [M, C / groups, ..], the elements of a filter in each, and
/// filters.
pub(crate) fn packed_sizes(layout: FilterLayout, filters: &[usize], groups: usize) -> [usize; 3] {
    match layout.tile() {
        None => [groups, filters[1..].iter().product(), filters[0] / groups],
        Some(outputs) => [(outputs + 2) * (outputs + 2), filters[1], filters[0]],
    }
}

/// The shape of packed filters: matrices, elements of a filter, and filters.
pub(crate) fn filter_panels_shape([matrices, depth, filters]: [usize; 3]) -> Shape {
    Shape::from([matrices, filters.div_ceil(PANEL), depth, PANEL])
}

/// Batch, channels and space of a value [N, C, ..].
pub(super) fn image(shape: Shape) -> [usize; 5] {
    let sizes = shape.fixed();
    let mut image = [1; 5];
    image[..2].copy_from_slice(&sizes[..2]);
    image[5 - (sizes.len() - 2)..].copy_from_slice(&sizes[2..]);
    image
}

/// The last three of five sizes.
pub(super) fn space(sizes: [usize; 5]) -> [usize; 3] {
    [sizes[2], sizes[3], sizes[4]]
}

/// All places along three axes, row-major.
pub(super) fn places([planes, rows, columns]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..planes).flat_map(move |plane| {
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [plane, row, column]))
    })
}

/// The index of a place.
pub(super) fn at([_, rows, columns]: [usize; 3], place: [usize; 3]) -> usize {
    (place[0] * rows + place[1]) * columns + place[2]
}

/// `from·stride + tap·dilation − pad`, if it is inside.
pub(super) fn reached(
    window: &Window,
    from: [usize; 3],
    tap: [usize; 3],
    size: [usize; 3],
) -> Option<[usize; 3]> {
    let mut place = [0; 3];
    for axis in 0..3 {
        let at = from[axis] * window.stride[axis] + tap[axis] * window.dilation[axis];
        place[axis] = at
            .checked_sub(window.pad_before[axis])
            .filter(|at| *at < size[axis])?;
    }
    Some(place)
}

/// Whether a window has one element and no padding along the first axes of space, which are not
/// used.
pub(super) fn leaves_out(window: &Window, unused: usize) -> bool {
    let Window {
        kernel,
        pad_before,
        pad_after,
        ..
    } = window;
    (0..unused).all(|axis| [kernel[axis], pad_before[axis], pad_after[axis]] == [1, 0, 0])
}

pub(super) fn window_text(window: &Window) -> String {
    let list = |sizes: [usize; 3]| sizes.map(|size| size.to_string()).join(" ");
    let Window {
        kernel,
        stride,
        dilation,
        pad_before,
        pad_after,
    } = window;
    let parts = [
        ("kernel", kernel),
        ("stride", stride),
        ("dilation", dilation),
        ("before", pad_before),
        ("after", pad_after),
    ];
    parts
        .map(|(name, sizes)| format!(", {name} {}", list(*sizes)))
        .concat()
}

pub(super) fn parse_triple(text: &CallText<'_>, name: &str) -> Result<[usize; 3]> {
    let list = text
        .named(name)
        .ok_or_else(|| fault(&format!("{name} is missing")))?;
    let sizes: Vec<usize> = list.split(' ').map(parse_number).collect::<Result<_>>()?;
    sizes
        .try_into()
        .map_err(|_| fault(&format!("{name} is three numbers")))
}

pub(super) fn parse_window(text: &CallText<'_>) -> Result<Window> {
    let part = |name| parse_triple(text, name);
    Ok(Window {
        kernel: part("kernel")?,
        stride: part("stride")?,
        dilation: part("dilation")?,
        pad_before: part("before")?,
        pad_after: part("after")?,
    })
}

impl Convolution {
    /// Of plain filters, with nothing after it.
    fn new([x, w]: [Node; 2], bias: Option<Node>, groups: usize, window: Window) -> Self {
        Self {
            x,
            w,
            bias,
            groups,
            window,
            transposed: None,
            residual: None,
            activation: Activation::None,
            layout: FilterLayout::Rows,
            is_exact: false,
        }
    }

    /// Whether a value of the result's shape can be added before the activation.
    pub fn takes_residual(&self) -> bool {
        self.transposed.is_none() && self.residual.is_none()
    }

    /// The convolution of an input to an output of these shapes, as a plan records it.
    pub fn settings(&self, x: Shape, shape: Shape) -> Settings {
        let (from, to) = (image(x), image(shape));
        let plain = Settings::new(from[1], to[1], space(from), self.window);
        Settings {
            batch: from[0],
            groups: self.groups,
            layout: self.layout,
            activation: self.activation,
            ..plain
        }
    }

    /// The element of a filter of a group: of its channels, then of the window.
    fn weight(
        &self,
        w: &Tensor,
        [per_in, per_out]: [usize; 2],
        [group, member, element]: [usize; 3],
    ) -> f64 {
        let (taps, panels) = (self.window.taps(), per_out.div_ceil(PANEL));
        let in_panels = |matrix: usize, depth: usize, element: usize| {
            w.data[((matrix * panels + member / PANEL) * depth + element) * PANEL + member % PANEL]
        };
        match (self.layout, self.layout.tile()) {
            (_, Some(outputs)) => {
                // The transform is G g Gᵀ: a weight is a sum of elements of it along each axis.
                let along: [&[(usize, f64)]; 3] = match outputs {
                    2 => [&[(0, 1.0)], &[(1, 1.0), (2, -1.0)], &[(3, 1.0)]],
                    _ => [&[(0, 4.0)], &[(2, 3.0), (1, -3.0)], &[(5, 1.0)]],
                };
                let (channel, tap) = (element / taps, element % taps);
                let pairs = along[tap / 3]
                    .iter()
                    .flat_map(|row| along[tap % 3].iter().map(move |column| (row, column)));
                pairs
                    .map(|(row, column)| {
                        row.1
                            * column.1
                            * in_panels(row.0 * (outputs + 2) + column.0, per_in, channel)
                    })
                    .sum()
            }
            (FilterLayout::Rows, None) => {
                w.data[(group * per_out + member) * per_in * taps + element]
            }
            (_, None) => in_panels(group, per_in * taps, element),
        }
    }

    fn sums(&self, x: &Tensor, w: &Tensor, shape: Shape) -> Vec<f64> {
        let (from, to) = (image(x.shape), image(shape));
        let (size_in, size_out, kernel) = (space(from), space(to), self.window.kernel);
        let (volume, pixels, taps) = (
            size_in.iter().product::<usize>(),
            size_out.iter().product::<usize>(),
            self.window.taps(),
        );
        let (per_in, per_out) = (from[1] / self.groups, to[1] / self.groups);
        let mut y = vec![0.0; shape.len()];
        for batch in 0..to[0] {
            for out in 0..to[1] {
                for inside in 0..per_in {
                    let channel = out / per_out * per_in + inside;
                    let source = &x.data[(batch * from[1] + channel) * volume..][..volume];
                    let sums = &mut y[(batch * to[1] + out) * pixels..][..pixels];
                    for tap in places(kernel) {
                        let tap_at = at(kernel, tap);
                        let weight = match self.transposed {
                            None => self.weight(
                                w,
                                [per_in, per_out],
                                [out / per_out, out % per_out, inside * taps + tap_at],
                            ),
                            Some(_) => w.data[(channel * per_out + out % per_out) * taps + tap_at],
                        };
                        let (grid, other) = if self.transposed.is_some() {
                            (size_in, size_out)
                        } else {
                            (size_out, size_in)
                        };
                        for place in places(grid) {
                            let Some(reached) = reached(&self.window, place, tap, other) else {
                                continue;
                            };
                            match self.transposed {
                                None => {
                                    sums[at(grid, place)] += weight * source[at(other, reached)]
                                }
                                Some(_) => {
                                    sums[at(other, reached)] += weight * source[at(grid, place)]
                                }
                            }
                        }
                    }
                }
            }
        }
        y
    }
}

impl Op for Convolution {
    fn arguments(&self, _: String) -> String {
        let named = |name: &str, node: Option<Node>| {
            node.map_or(String::new(), |node| format!(", {name} %{node}"))
        };
        let operands = nodes(&[self.x, self.w])
            + &named("bias", self.bias)
            + &named("residual", self.residual);
        let adds = self.transposed.map_or(String::new(), |sizes| {
            format!(", adds {}", sizes.map(|size| size.to_string()).join(" "))
        });
        let activation = if self.activation == Activation::None {
            String::new()
        } else {
            format!(", {}", activation_name(self.activation))
        };
        let layout = if self.layout == FilterLayout::Rows {
            String::new()
        } else {
            format!(", {}", self.layout.name())
        };
        let exact = if self.is_exact { ", exact" } else { "" };
        format!(
            "{operands}, groups {}{}{adds}{layout}{exact}{activation}",
            self.groups,
            window_text(&self.window)
        )
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        [
            Some(&mut self.x),
            Some(&mut self.w),
            self.bias.as_mut(),
            self.residual.as_mut(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let mut data = self.sums(&values[&self.x], &values[&self.w], shape);
        let [_, channels, ..] = image(shape);
        let pixels = space(image(shape)).iter().product::<usize>();
        for (place, sum) in data.iter_mut().enumerate() {
            let bias = self
                .bias
                .map_or(0.0, |bias| values[&bias].data[place / pixels % channels]);
            let residual = self
                .residual
                .map_or(0.0, |residual| values[&residual].data[place]);
            *sum = self.activation.reference(*sum + bias + residual);
        }
        Ok(Tensor { shape, data })
    }

    /// At x the other kind of convolution of g with the same filters; at the filters a convolution
    /// of one of x and g with the other; at the bias a sum.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self {
            x,
            w,
            bias,
            groups,
            window,
            transposed,
            residual,
            activation,
            layout,
            ..
        } = *self;
        if residual.is_some() || activation != Activation::None || layout != FilterLayout::Rows {
            return no_derivative_of_fused();
        }
        let size_in = space(image(pass.builder.shape_of(x)?));
        pass.give(x, |pass| match transposed {
            None => pass.builder.convolution_transposed(
                g,
                w,
                None,
                groups,
                window,
                unread(&window, size_in),
            ),
            Some(_) => {
                let all = pass.builder.convolution(g, w, None, groups, window)?;
                pass.builder.first_elements(all, size_in)
            }
        })?;
        pass.give(w, |pass| match transposed {
            None => pass
                .builder
                .filter_gradient([x, g], groups, &window, unread(&window, size_in)),
            Some(adds) => pass.builder.filter_gradient([g, x], groups, &window, adds),
        })?;
        bias.map_or(Ok(()), |bias| {
            pass.give(bias, |pass| pass.builder.channel_sums(g))
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let (x, w) = (lowering.views[&self.x], lowering.views[&self.w]);
        let [bias, residual] =
            [self.bias, self.residual].map(|node| node.map(|node| lowering.views[&node]));
        let ([batch, channels_in, ..], [_, channels_out, ..]) =
            (image(lowering.shape(self.x)), image(shape));
        let (size_in, groups, activation) = (
            space(image(lowering.shape(self.x))),
            self.groups,
            self.activation,
        );
        match self.transposed {
            None => {
                let settings = Settings {
                    residual,
                    ..self.settings(lowering.shape(self.x), shape)
                };
                lowering.plan.convolution(x, w, bias, y, &settings)
            }
            Some(output_padding) => {
                let plain =
                    TransposedConvolution::new(channels_in, channels_out, size_in, self.window);
                lowering.plan.convolution_transposed(
                    x,
                    w,
                    bias,
                    y,
                    &TransposedConvolution {
                        batch,
                        groups,
                        output_padding,
                        activation,
                        ..plain
                    },
                )
            }
        }
    }
}

impl Call for Convolution {
    const NAME: &'static str = "convolution";

    fn name(&self) -> Cow<'static, str> {
        if self.transposed.is_some() {
            "convolution_transposed".into()
        } else {
            Self::NAME.into()
        }
    }

    fn is_named(name: &str) -> bool {
        matches!(name, "convolution" | "convolution_transposed")
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        let activation = text
            .arguments
            .iter()
            .find_map(|argument| activation_named(argument))
            .unwrap_or_default();
        let transposed = if text.name == Self::NAME {
            None
        } else {
            Some(parse_triple(text, "adds")?)
        };
        let (bias, residual, is_exact) = (
            text.named_node("bias")?,
            text.named_node("residual")?,
            text.arguments.contains(&"exact"),
        );
        let layout = FilterLayout::ALL
            .into_iter()
            .find(|layout| text.arguments.contains(&layout.name()))
            .unwrap_or_default();
        let plain = Convolution::new(
            [text.node(0)?, text.node(1)?],
            bias,
            text.number("groups")?,
            parse_window(text)?,
        );
        let channels = shape
            .sizes()
            .and_then(|sizes| sizes.get(1).copied())
            .unwrap_or_default();
        builder.push_convolution(
            Convolution {
                transposed,
                residual,
                activation,
                layout,
                is_exact,
                ..plain
            },
            channels,
        )
    }
}

impl GraphBuilder {
    /// Adds a convolution over up to three axes of space: each output element is the sum of a
    /// window of the input times a filter, plus the filter's bias.
    ///
    /// # Shapes
    /// `x` [N, C, ..], `w` [M, C / groups, ..], `bias` \[M\], with one to three axes of space,
    /// which are the last axes of the window; gives [N, M, ..] with the sizes of
    /// [`Window::size_out`].
    /// # Errors
    /// `Invalid` if the shapes do not fit, a dimension is a letter, channels are no multiple of
    /// `groups`, or a node is not of this graph; as [`Window::size_out`].
    pub fn convolution(
        &mut self,
        x: Node,
        w: Node,
        bias: Option<Node>,
        groups: usize,
        window: Window,
    ) -> Result<Node> {
        let channels = self
            .shape(Convolution::NAME, w)?
            .sizes()
            .map_or(0, |sizes| sizes[0]);
        self.push_convolution(Convolution::new([x, w], bias, groups, window), channels)
    }

    /// Adds a convolution of whole numbers without a bias: where all sums of the magnitudes of its
    /// products are at most 2²⁴, the result is exact on every device.
    ///
    /// # Shapes
    /// As [`GraphBuilder::convolution`].
    /// # Errors
    /// As [`GraphBuilder::convolution`].
    pub fn convolution_exact(
        &mut self,
        x: Node,
        w: Node,
        groups: usize,
        window: Window,
    ) -> Result<Node> {
        let channels = self
            .shape(Convolution::NAME, w)?
            .sizes()
            .map_or(0, |sizes| sizes[0]);
        self.push_convolution(
            Convolution {
                is_exact: true,
                ..Convolution::new([x, w], None, groups, window)
            },
            channels,
        )
    }

    /// Adds a transposed convolution: each input element times a filter is added to a window of the
    /// output.
    ///
    /// # Shapes
    /// `x` [N, C, ..], `w` [C, M / groups, ..], `bias` \[M\]; gives [N, M, ..] with the sizes of
    /// [`Window::transposed_size_out`], `adds` elements at the end of each axis included.
    /// # Errors
    /// As [`GraphBuilder::convolution`] and [`Window::transposed_size_out`].
    pub fn convolution_transposed(
        &mut self,
        x: Node,
        w: Node,
        bias: Option<Node>,
        groups: usize,
        window: Window,
        adds: [usize; 3],
    ) -> Result<Node> {
        let channels = self
            .shape("convolution_transposed", w)?
            .sizes()
            .and_then(|sizes| sizes.get(1).copied())
            .unwrap_or_default();
        self.push_convolution(
            Convolution {
                transposed: Some(adds),
                ..Convolution::new([x, w], bias, groups, window)
            },
            channels.saturating_mul(groups),
        )
    }

    fn push_convolution(&mut self, operation: Convolution, channels_out: usize) -> Result<Node> {
        let Convolution {
            x,
            w,
            bias,
            groups,
            window,
            transposed,
            layout,
            ..
        } = operation;
        let name = operation.name();
        let (x_shape, w_shape) = (self.shape(&name, x)?, self.shape(&name, w)?);
        let from = self.image_sizes(&name, x_shape)?;
        let whole =
            groups > 0 && from[1].is_multiple_of(groups) && channels_out.is_multiple_of(groups);
        let fits = whole && {
            let (per_in, per_out) = (from[1] / groups, channels_out / groups);
            let plain = if transposed.is_some() {
                [from[1], per_out]
            } else {
                [channels_out, per_in]
            };
            let rank = x_shape.rank() - 2;
            let kernel = window.kernel;
            let filters = [&plain[..], &kernel[3 - rank..]].concat();
            let is_plain = w_shape.sizes().is_some_and(|sizes| sizes == filters);
            let is_packed = || {
                let takes = Settings {
                    groups,
                    ..Settings::new(from[1], channels_out, space(from), window)
                }
                .takes(layout);
                let depth = per_in.checked_mul(window.taps());
                takes
                    && transposed.is_none()
                    && depth.is_some()
                    && filter_panels_shape(packed_sizes(layout, &filters, groups)) == w_shape
            };
            let is_unused = leaves_out(&window, 3 - rank)
                && transposed.is_none_or(|adds| adds[..3 - rank].iter().all(|size| *size == 0));
            is_unused
                && if layout == FilterLayout::Rows {
                    is_plain
                } else {
                    is_packed()
                }
        };
        if !fits {
            return Err(self.fault(format_args!(
                "{name}: x {x_shape:?}, filters {w_shape:?} in {groups} groups, kernel {:?}",
                window.kernel
            )));
        }
        if let Some(bias) = bias
            && self.shape(&name, bias)? != [channels_out]
        {
            return Err(self.fault(format_args!("{name}: a bias of [{channels_out}] is needed")));
        }
        let size_out = match transposed {
            None => window.size_out(space(from)),
            Some(adds) => window.transposed_size_out(space(from), adds),
        };
        let size_out = size_out.map_err(|error| self.fault(format_args!("{name}: {error}")))?;
        let mut dims: Vec<Dim> = vec![from[0].into(), channels_out.into()];
        dims.extend(
            size_out[5 - x_shape.rank()..]
                .iter()
                .map(|size| Dim::Size(*size)),
        );
        let shape = Shape::of(&dims);
        self.check_shape(&name, shape)?;
        if let Some(residual) = operation.residual
            && self.shape(&name, residual)? != shape
        {
            return Err(self.fault(format_args!("{name}: a residual of {shape:?} is needed")));
        }
        Ok(self.push(operation, shape))
    }

    /// The sizes of a value [N, C, ..] with one to three axes of space.
    pub(super) fn image_sizes(&self, op: &str, shape: Shape) -> Result<[usize; 5]> {
        match shape.sizes() {
            Some(_) if (3..=5).contains(&shape.rank()) => Ok(image(shape)),
            _ => Err(self.fault(format_args!(
                "{op}: {shape:?}: sizes [N, C, ..] with one to three axes of space are needed"
            ))),
        }
    }
}
