//! Weights packed in the order in which products read them.

use std::collections::{BTreeMap, BTreeSet};

use tectum::FilterLayout;
use tectum::operation::product::panel_format::{PANEL, PanelFormat};

use super::operation::{
    Concat, Convolution, Fed, FedKind, Linear, LinearEpilogue, LinearPanels, MatMul,
    filter_panels_shape, packed_sizes, panels_shape,
};
use super::{Definition, Factor, Graph, Node, Operation, Shape};

/// A parameter whose values must be given in panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedParameter {
    /// The parameter, of another shape in the graph that [`Graph::pack_weights`] made:
    /// `[⌈n / 16⌉, words of a panel / 16, 16]` for each group.
    pub node: Node,
    /// Storage format of its weights.
    pub format: PanelFormat,
    /// Matrices that are packed one after another: groups of filters of a convolution, or the
    /// elements of their transforms; 1 for products.
    pub groups: usize,
    /// What is packed of filters of a convolution; themselves for products.
    pub layout: FilterLayout,
    /// Rows and columns of the product's right operand, of one matrix.
    pub sizes: [usize; 2],
    /// Whether the parameter was its transpose, `[n, k]`, for each group.
    pub transposed: bool,
}

impl PackedParameter {
    /// Packs the parameter's original values in panels of words, as [`PanelFormat::pack`].
    ///
    /// # Panics
    /// If either length differs from the parameter's.
    pub fn pack(&self, values: &[f32], panels: &mut [u32]) {
        let [k, n] = self.sizes;
        let values = self.layout.transform(values);
        assert_eq!(
            (values.len(), panels.len()),
            (self.groups * k * n, self.words()),
            "values and panels"
        );
        let strides = if self.transposed { [1, k] } else { [n, 1] };
        let groups = values
            .chunks_exact((k * n).max(1))
            .zip(panels.chunks_exact_mut(self.format.words(k, n).max(1)));
        groups.for_each(|(values, panels)| self.format.pack(values, self.sizes, strides, panels));
    }

    /// Words of its panels.
    pub fn words(&self) -> usize {
        let [k, n] = self.sizes;
        self.groups * self.format.words(k, n)
    }
}

impl Graph {
    /// The same network with its weights in [panels](tectum::operation::product::gemm_panels):
    /// every parameter that is read only as the right operand of products changes its shape, and so
    /// do those that are concatenated along `out` for merged products. Run it after
    /// [`Graph::optimize`]; set the listed parameters through [`PackedParameter::pack`].
    ///
    /// `format` gives the storage format of a parameter's weights. Concatenated parameters stay in
    /// f32 if their formats differ, or if they are not consecutive parameters.
    ///
    /// This pays on the CPU, where products would otherwise reorder their weights in every run.
    #[must_use]
    pub fn pack_weights(
        &self,
        format: impl Fn(&str) -> PanelFormat,
    ) -> (Graph, Vec<PackedParameter>) {
        let mut products = self.packable();
        loop {
            let before = products.len();
            products = self.without_other_readers(products);
            if products.len() == before {
                break;
            }
        }
        let (mut graph, mut packed) = (self.clone(), BTreeMap::new());
        let formats = self.formats(&products, format);
        for (&node, product) in &products {
            let [k, _] = product.oriented;
            let format = formats[&product.parameters[0]];
            for &part in &product.parameters {
                let [rows, cols] = self.nodes[&part].shape.matrix();
                let n = if product.transposed { rows } else { cols };
                let layout = FilterLayout::Panels;
                packed.insert(
                    part,
                    PackedParameter {
                        node: part,
                        format,
                        groups: 1,
                        layout,
                        sizes: [k, n],
                        transposed: product.transposed,
                    },
                );
                graph.keep_as(part, format, panels_shape(format, k, n));
            }
            graph.keep_as(
                product.b,
                format,
                panels_shape(format, k, product.oriented[1]),
            );
            let shape = self.nodes[&node].shape;
            let operation = LinearPanels {
                a: product.a,
                b: product.b,
                format,
                tail: product.tail,
            }
            .into();
            graph.nodes.insert(node, Definition { operation, shape });
        }
        (graph, packed.into_values().collect())
    }

    /// The same network with the filters of its convolutions [packed](FilterLayout) as floats:
    /// every parameter that only convolutions of the same groups read as their filters changes its
    /// shape, except those of one channel each. Run it after [`Graph::optimize`]; set the listed
    /// parameters through [`PackedParameter::pack`].
    ///
    /// This pays on the CPU, which has the algorithms that these layouts are for.
    #[must_use]
    pub fn pack_filters(&self) -> (Graph, Vec<PackedParameter>) {
        let (mut graph, mut packed) = (self.clone(), Vec::new());
        let uses = self.uses();
        let mut readers: BTreeMap<Node, Vec<(Node, Convolution)>> = BTreeMap::new();
        for (&node, definition) in &self.nodes {
            if let Operation::Convolution(convolution) = definition.operation {
                readers
                    .entry(convolution.w)
                    .or_default()
                    .push((node, convolution));
            }
        }
        for (w, readers) in readers {
            let (groups, filters) = (readers[0].1.groups, self.nodes[&w].shape.fixed());
            let is_packable = |(_, reader): &(Node, Convolution)| {
                reader.transposed.is_none()
                    && reader.layout == FilterLayout::Rows
                    && reader.groups == groups
            };
            let is_read_alone =
                uses.get(&w) == Some(&readers.len()) && self.nodes[&w].operation.is_parameter();
            if filters[1] == 1 || !is_read_alone || !readers.iter().all(is_packable) {
                continue;
            }
            // The layout of the first that all can have.
            let settings = |(node, reader): &(Node, Convolution)| {
                reader.settings(self.nodes[&reader.x].shape, self.nodes[node].shape)
            };
            let fastest = settings(&readers[0]).fastest_layout();
            let takes = |reader: &(Node, Convolution)| {
                settings(reader).takes(fastest) && (fastest.tile().is_none() || !reader.1.is_exact)
            };
            let layout = if readers.iter().all(takes) {
                fastest
            } else {
                FilterLayout::Panels
            };
            let (format, [groups, sizes @ ..]) =
                (PanelFormat::F32, packed_sizes(layout, &filters, groups));
            packed.push(PackedParameter {
                node: w,
                format,
                groups,
                layout,
                sizes,
                transposed: true,
            });
            graph.keep_as(w, format, filter_panels_shape([groups, sizes[0], sizes[1]]));
            for (node, reader) in readers {
                let shape = self.nodes[&node].shape;
                graph.nodes.insert(
                    node,
                    Definition {
                        operation: Convolution { layout, ..reader }.into(),
                        shape,
                    },
                );
            }
        }
        (graph, packed)
    }

    fn keep_as(&mut self, node: Node, to: PanelFormat, shape: Shape) {
        if let Some(definition) = self.nodes.get_mut(&node) {
            definition.shape = shape;
            if let Operation::Fed(Fed {
                kind: FedKind::Parameter(format),
                ..
            }) = &mut definition.operation
            {
                *format = to;
            }
        }
    }

    /// The format of every parameter of products, the same for all concatenated ones. Only floats
    /// can be copied to be contiguous.
    fn formats(
        &self,
        products: &BTreeMap<Node, Product>,
        format: impl Fn(&str) -> PanelFormat,
    ) -> BTreeMap<Node, PanelFormat> {
        let places: BTreeMap<Node, usize> = self
            .parameters()
            .enumerate()
            .map(|(place, (_, node, _))| (node, place))
            .collect();
        let mut formats: BTreeMap<Node, PanelFormat> = self
            .parameters()
            .map(|(name, node, _)| (node, format(name)))
            .collect();
        loop {
            let before = formats.clone();
            for parts in products.values().map(|product| &product.parameters) {
                let is_run = parts
                    .windows(2)
                    .all(|pair| places[&pair[0]] + 1 == places[&pair[1]]);
                if !is_run || parts.iter().any(|part| formats[part] != formats[&parts[0]]) {
                    formats.extend(parts.iter().map(|part| (*part, PanelFormat::F32)));
                }
            }
            if formats == before {
                return formats;
            }
        }
    }

    /// Products whose right operand is a parameter, or consecutive parameters of which all except
    /// the last are whole panels.
    fn packable(&self) -> BTreeMap<Node, Product> {
        let product = |(&node, definition): (&Node, &Definition)| {
            let (a, b, tail) = match &definition.operation {
                Operation::MatMul(MatMul { a, b }) if !self.is_batched(*a, *b) => {
                    (*a, *b, LinearEpilogue::default())
                }
                Operation::Linear(Linear { a, b, tail }) => (*a, *b, *tail),
                _ => return None,
            };
            let parameters = self.parameters_of(b)?;
            let shape = self.nodes[&b.node].shape;
            let [rows, cols] = shape.sizes().map(|_| shape.matrix())?;
            let oriented = if b.transposed {
                [cols, rows]
            } else {
                [rows, cols]
            };
            (!a.transposed).then_some((
                node,
                Product {
                    a: a.node,
                    b: b.node,
                    transposed: b.transposed,
                    oriented,
                    parameters,
                    tail,
                },
            ))
        };
        self.nodes.iter().filter_map(product).collect()
    }

    fn parameters_of(&self, b: Factor) -> Option<Vec<Node>> {
        let is_parameter = |node: &Node| self.nodes[node].operation.is_parameter();
        match &self.nodes[&b.node].operation {
            operation if operation.is_parameter() => Some(vec![b.node]),
            Operation::Concat(Concat { parts, axis: 0 })
                if b.transposed && parts.iter().all(is_parameter) =>
            {
                let (_, whole) = parts.split_last()?;
                let is_whole =
                    |part: &Node| self.nodes[part].shape.matrix()[0].is_multiple_of(PANEL);
                whole.iter().all(is_whole).then(|| parts.clone())
            }
            _ => None,
        }
    }

    /// The products whose parameters have no other readers, in the same orientation.
    fn without_other_readers(&self, products: BTreeMap<Node, Product>) -> BTreeMap<Node, Product> {
        let uses = self.uses();
        let mut readers: BTreeMap<(Node, bool), usize> = BTreeMap::new();
        let mut joined = BTreeSet::new();
        for product in products.values() {
            *readers.entry((product.b, product.transposed)).or_default() += 1;
            if product.parameters != [product.b] && joined.insert(product.b) {
                product
                    .parameters
                    .iter()
                    .for_each(|part| *readers.entry((*part, true)).or_default() += 1);
            }
        }
        let is_alone =
            |node: Node, transposed: bool| uses.get(&node) == readers.get(&(node, transposed));
        let alone = |product: &Product| {
            let parts = product.parameters.iter().chain([&product.b]);
            parts
                .into_iter()
                .all(|part| is_alone(*part, product.transposed))
        };
        products
            .into_iter()
            .filter(|(_, product)| alone(product))
            .collect()
    }
}

/// A product that may read its right operand in panels.
struct Product {
    a: Node,
    b: Node,
    transposed: bool,
    /// Rows and columns of the right operand.
    oriented: [usize; 2],
    /// `b`, or its concatenated parts.
    parameters: Vec<Node>,
    tail: LinearEpilogue,
}
