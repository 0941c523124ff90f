//! Expressions: one acyclic graph for a whole system, in base units, in which equal expressions are
//! one node.

use std::collections::HashMap;

use super::arithmetic::Arithmetic;
use super::operation::{BinaryOp, Comparison, UnaryOp};

/// A node of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

/// What the value of a variable is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variable {
    Parameter(u16),
    State(u16),
    Input(u16),
    Noise(u16),
}

/// A definition of a node by earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// The bits of a float.
    Constant(u64),
    Variable(Variable),
    Unary(UnaryOp, Id),
    Binary(BinaryOp, Id, Id),
    Compare(Comparison, Id, Id),
    And(Id, Id),
    Or(Id, Id),
    Not(Id),
    /// The second if the first, a condition, is true, else the third.
    Select(Id, Id, Id),
}

impl Node {
    /// The nodes that it reads.
    fn operands(self) -> impl Iterator<Item = Id> {
        let operands = match self {
            Node::Constant(_) | Node::Variable(_) => [None; 3],
            Node::Unary(_, a) | Node::Not(a) => [Some(a), None, None],
            Node::Binary(_, a, b) | Node::Compare(_, a, b) | Node::And(a, b) | Node::Or(a, b) => {
                [Some(a), Some(b), None]
            }
            Node::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }

    /// The same of other nodes.
    fn with_operands(self, other: impl Fn(Id) -> Id) -> Node {
        match self {
            Node::Constant(_) | Node::Variable(_) => self,
            Node::Unary(op, a) => Node::Unary(op, other(a)),
            Node::Binary(op, a, b) => Node::Binary(op, other(a), other(b)),
            Node::Compare(op, a, b) => Node::Compare(op, other(a), other(b)),
            Node::And(a, b) => Node::And(other(a), other(b)),
            Node::Or(a, b) => Node::Or(other(a), other(b)),
            Node::Not(a) => Node::Not(other(a)),
            Node::Select(a, b, c) => Node::Select(other(a), other(b), other(c)),
        }
    }
}

/// All expressions of a system.
#[derive(Debug, Clone, Default)]
pub struct Expressions {
    nodes: Vec<Node>,
    known: HashMap<Node, Id>,
}

/// The nodes that some results need, in an order in which each follows those that it reads. Their
/// operands are places in this order.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    nodes: Vec<Node>,
    results: Vec<Id>,
}

impl Tape {
    /// Whether a result depends on a variable of some kind.
    pub fn reads(&self, is_of_kind: impl Fn(Variable) -> bool) -> bool {
        self.nodes
            .iter()
            .any(|node| matches!(node, Node::Variable(variable) if is_of_kind(*variable)))
    }

    /// The variable that the first result is, if it is one.
    pub fn as_variable(&self) -> Option<Variable> {
        match self.nodes[self.results.first()?.0 as usize] {
            Node::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    /// Computes the results, given the values of variables. A condition is a result too.
    pub fn evaluate<A: Arithmetic>(
        &self,
        arithmetic: &mut A,
        variable: impl Fn(&mut A, Variable) -> A::Value,
    ) -> Vec<Outcome<A>> {
        let mut values: Vec<Outcome<A>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let number = |id: Id| {
                values[id.0 as usize]
                    .as_number()
                    .expect("invariant: checked when parsed: a number")
            };
            let condition = |id: Id| {
                values[id.0 as usize]
                    .as_condition()
                    .expect("invariant: checked when parsed: a condition")
            };
            let value = match *node {
                Node::Constant(bits) => Outcome::Number(arithmetic.constant(f64::from_bits(bits))),
                Node::Variable(which) => Outcome::Number(variable(arithmetic, which)),
                Node::Unary(op, a) => Outcome::Number(arithmetic.unary(op, &number(a))),
                Node::Binary(op, a, b) => {
                    Outcome::Number(arithmetic.binary(op, &number(a), &number(b)))
                }
                Node::Compare(op, a, b) => {
                    Outcome::Condition(arithmetic.compare(op, &number(a), &number(b)))
                }
                Node::And(a, b) => Outcome::Condition(arithmetic.and(&condition(a), &condition(b))),
                Node::Or(a, b) => Outcome::Condition(arithmetic.or(&condition(a), &condition(b))),
                Node::Not(a) => Outcome::Condition(arithmetic.not(&condition(a))),
                Node::Select(a, b, c) => {
                    Outcome::Number(arithmetic.select(&condition(a), &number(b), &number(c)))
                }
            };
            values.push(value);
        }
        self.results
            .iter()
            .map(|id| values[id.0 as usize].clone())
            .collect()
    }
}

impl Expressions {
    /// The node with a definition.
    pub fn add(&mut self, node: Node) -> Id {
        let next = Id(self.nodes.len() as u32);
        let id = *self.known.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }

    /// A constant.
    pub fn constant(&mut self, value: f64) -> Id {
        self.add(Node::Constant(value.to_bits()))
    }

    /// The value of a node that is a constant.
    pub fn as_constant(&self, id: Id) -> Option<f64> {
        match self.nodes[id.0 as usize] {
            Node::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// The variable that a node is, if it is one.
    pub fn as_variable(&self, id: Id) -> Option<Variable> {
        match self.nodes[id.0 as usize] {
            Node::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What the results need.
    pub fn tape(&self, results: impl IntoIterator<Item = Id>) -> Tape {
        let results: Vec<Id> = results.into_iter().collect();
        let mut is_needed = vec![false; self.nodes.len()];
        let mut open = results.clone();
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut is_needed[id.0 as usize], true) {
                open.extend(self.nodes[id.0 as usize].operands());
            }
        }
        let (mut places, mut nodes) = (vec![Id(0); self.nodes.len()], Vec::new());
        for (place, node) in self
            .nodes
            .iter()
            .enumerate()
            .filter(|(place, _)| is_needed[*place])
        {
            places[place] = Id(nodes.len() as u32);
            nodes.push(node.with_operands(|id| places[id.0 as usize]));
        }
        Tape {
            nodes,
            results: results.iter().map(|id| places[id.0 as usize]).collect(),
        }
    }
}

/// A computed node.
#[derive(Debug, Clone)]
pub enum Outcome<A: Arithmetic> {
    Number(A::Value),
    Condition(A::Condition),
}

impl<A: Arithmetic> Outcome<A> {
    /// Its number, if it is one.
    pub fn as_number(&self) -> Option<A::Value> {
        match self {
            Outcome::Number(value) => Some(value.clone()),
            Outcome::Condition(_) => None,
        }
    }

    /// Its condition, if it is one.
    pub fn as_condition(&self) -> Option<A::Condition> {
        match self {
            Outcome::Number(_) => None,
            Outcome::Condition(condition) => Some(condition.clone()),
        }
    }
}
