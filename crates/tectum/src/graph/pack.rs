//! Weights in the order in which products read them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Definition, Factor, Graph, Node, Operation, Shape, Tail};
use crate::kernel::gemm_panels::{PANEL, pack_panels};

/// A parameter whose values are to be given in panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedParameter {
    /// The parameter, of another shape in the graph that [`Graph::pack_weights`] made: `[⌈n / 16⌉, k, 16]`.
    pub node: Node,
    /// Rows and columns of the product's right operand.
    pub sizes: [usize; 2],
    /// Whether the parameter was its transpose, `[n, k]`.
    pub transposed: bool,
}

impl PackedParameter {
    /// Puts the parameter's values, as they were, in panels.
    ///
    /// # Panics
    /// If either length is another than the parameter's.
    pub fn pack(&self, values: &[f32], panels: &mut [f32]) {
        let [k, n] = self.sizes;
        pack_panels(values, self.sizes, if self.transposed { [1, k] } else { [n, 1] }, panels);
    }
}

impl Graph {
    /// The same network with its weights in [panels](crate::kernel::gemm_panels): every parameter that is read as the right
    /// operand of products alone takes another shape, and so do those that are put together along `out` for merged products.
    /// Run it after [`Graph::optimize`]; what it lists is to be given through [`PackedParameter::pack`].
    ///
    /// This pays on the CPU, where products would else put their weights in order in every run.
    #[must_use]
    pub fn pack_weights(&self) -> (Graph, Vec<PackedParameter>) {
        let mut products = self.packable();
        loop {
            let before = products.len();
            products = self.without_other_readers(products);
            if products.len() == before {
                break;
            }
        }
        let (mut graph, mut packed) = (self.clone(), BTreeMap::new());
        for (&node, product) in &products {
            let [k, _] = product.oriented;
            for &part in &product.parameters {
                let [rows, cols] = self.nodes[&part].shape.matrix();
                let n = if product.transposed { rows } else { cols };
                packed.insert(part, PackedParameter { node: part, sizes: [k, n], transposed: product.transposed });
                graph.reshape_in_place(part, [n.div_ceil(PANEL), k, PANEL]);
            }
            graph.reshape_in_place(product.b, [product.oriented[1].div_ceil(PANEL), k, PANEL]);
            let shape = self.nodes[&node].shape;
            let operation = Operation::LinearPanels { a: product.a, b: product.b, tail: product.tail };
            graph.nodes.insert(node, Definition { operation, shape });
        }
        (graph, packed.into_values().collect())
    }

    fn reshape_in_place(&mut self, node: Node, shape: [usize; 3]) {
        if let Some(definition) = self.nodes.get_mut(&node) {
            definition.shape = Shape::from(shape);
        }
    }

    /// Products whose right operand is a parameter, or parameters one after another of which all but the last are whole panels.
    fn packable(&self) -> BTreeMap<Node, Product> {
        let product = |(&node, definition): (&Node, &Definition)| {
            let (a, b, tail) = match &definition.operation {
                Operation::MatMul { a, b } if !self.is_batched(*a, *b) => (*a, *b, Tail::default()),
                Operation::Linear { a, b, tail } => (*a, *b, *tail),
                _ => return None,
            };
            let parameters = self.parameters_of(b)?;
            let shape = self.nodes[&b.node].shape;
            let [rows, cols] = shape.sizes().map(|_| shape.matrix())?;
            let oriented = if b.transposed { [cols, rows] } else { [rows, cols] };
            (!a.transposed).then_some((node, Product { a: a.node, b: b.node, transposed: b.transposed, oriented, parameters, tail }))
        };
        self.nodes.iter().filter_map(product).collect()
    }

    fn parameters_of(&self, b: Factor) -> Option<Vec<Node>> {
        let is_parameter = |node: &Node| matches!(self.nodes[node].operation, Operation::Parameter { .. });
        match &self.nodes[&b.node].operation {
            Operation::Parameter { .. } => Some(vec![b.node]),
            Operation::Concat { parts, axis: 0 } if b.transposed && parts.iter().all(is_parameter) => {
                let (_, whole) = parts.split_last()?;
                let is_whole = |part: &Node| self.nodes[part].shape.matrix()[0].is_multiple_of(PANEL);
                whole.iter().all(is_whole).then(|| parts.clone())
            }
            _ => None,
        }
    }

    /// Those of the products whose parameters nothing else reads, in the same orientation.
    fn without_other_readers(&self, products: BTreeMap<Node, Product>) -> BTreeMap<Node, Product> {
        let uses = self.uses();
        let mut readers: BTreeMap<(Node, bool), usize> = BTreeMap::new();
        let mut joined = BTreeSet::new();
        for product in products.values() {
            *readers.entry((product.b, product.transposed)).or_default() += 1;
            if product.parameters != [product.b] && joined.insert(product.b) {
                product.parameters.iter().for_each(|part| *readers.entry((*part, true)).or_default() += 1);
            }
        }
        let is_alone = |node: Node, transposed: bool| uses.get(&node) == readers.get(&(node, transposed));
        let alone = |product: &Product| {
            let parts = product.parameters.iter().chain([&product.b]);
            parts.into_iter().all(|part| is_alone(*part, product.transposed))
        };
        products.into_iter().filter(|(_, product)| alone(product)).collect()
    }
}

/// A product that may read its right operand in panels.
struct Product {
    a: Node,
    b: Node,
    transposed: bool,
    /// Rows and columns of the right operand.
    oriented: [usize; 2],
    /// `b`, or what it is put together of.
    parameters: Vec<Node>,
    tail: Tail,
}
