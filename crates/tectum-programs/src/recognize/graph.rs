//! Values as a graph of the operations that compute them, without duplicates.
//!
//! Integers computed from counters are forms ([`Affine`]); every other instruction is one node.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::affine::{Affine, Extents, Var};
use crate::{BinaryOp, BufferIndex, Condition, Register, TernaryOp, Type, UnaryOp, scalar};

/// A node's index; its operands come before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    Integer {
        ty: Type,
        form: Affine,
    },
    /// The bits of a float.
    Float {
        ty: Type,
        bits: u64,
    },
    /// The contents of a buffer before the launch, at an offset in bytes.
    Load {
        ty: Type,
        buffer: BufferIndex,
        at: Affine,
    },
    Unary {
        op: UnaryOp,
        ty: Type,
        a: Id,
    },
    Binary {
        op: BinaryOp,
        ty: Type,
        a: Id,
        b: Id,
    },
    Ternary {
        op: TernaryOp,
        ty: Type,
        a: Id,
        b: Id,
        c: Id,
    },
    Convert {
        to: Type,
        from: Type,
        a: Id,
    },
    Compare {
        condition: Condition,
        ty: Type,
        a: Id,
        b: Id,
    },
    Truth(bool),
    Select {
        ty: Type,
        predicate: Id,
        on_true: Id,
        on_false: Id,
    },
    /// A float register at the start of an iteration.
    Carried {
        turn: u32,
        register: Register,
        ty: Type,
    },
    /// A register after the last iteration.
    Fold {
        turn: u32,
        register: Register,
        ty: Type,
    },
    /// The value that a lane stored in shared memory, by the lane's number.
    Stored {
        ty: Type,
        part: u32,
        at: Affine,
    },
    /// The result of an instruction that is not followed.
    Unknown {
        instruction: usize,
        ty: Type,
    },
}

#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
}

impl Graph {
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn put(&mut self, node: Node) -> Id {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }

    pub fn integer(&mut self, ty: Type, form: &Affine) -> Id {
        self.put(Node::Integer {
            ty,
            form: form.wrapped(ty),
        })
    }

    /// A constant of any type.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Id {
        if ty.is_integer() {
            self.integer(ty, &Affine::constant(i128::from(bits)))
        } else {
            self.put(Node::Float { ty, bits })
        }
    }

    pub fn form(&self, id: Id) -> Option<&Affine> {
        if let Node::Integer { form, .. } = self.node(id) {
            Some(form)
        } else {
            None
        }
    }

    /// The bits of an integer constant.
    fn bits(&self, id: Id) -> Option<u64> {
        self.form(id)
            .and_then(Affine::as_constant)
            .map(|bits| bits as u64)
    }

    pub fn ty(&self, id: Id) -> Option<Type> {
        Some(match self.node(id) {
            Node::Integer { ty, .. }
            | Node::Float { ty, .. }
            | Node::Load { ty, .. }
            | Node::Unary { ty, .. }
            | Node::Binary { ty, .. } => *ty,
            Node::Ternary { ty, .. }
            | Node::Select { ty, .. }
            | Node::Carried { ty, .. }
            | Node::Fold { ty, .. } => *ty,
            Node::Stored { ty, .. } | Node::Unknown { ty, .. } => *ty,
            Node::Convert { to, .. } => *to,
            Node::Compare { .. } | Node::Truth(_) => return None,
        })
    }

    pub fn unary(&mut self, op: UnaryOp, ty: Type, a: Id) -> Id {
        match self.form(a).cloned() {
            Some(form) if op == UnaryOp::Neg => self.integer(ty, &form.scale(-1)),
            Some(Affine { constant, .. }) if self.bits(a).is_some() => {
                self.constant(ty, scalar::unary(op, ty, constant as u64))
            }
            _ => self.put(Node::Unary { op, ty, a }),
        }
    }

    /// The result of an operation; a division of integers by 0 is not folded.
    pub fn binary(&mut self, op: BinaryOp, ty: Type, a: Id, b: Id, extents: &Extents) -> Id {
        if let (Some(x), Some(y)) = (self.form(a).cloned(), self.form(b).cloned()) {
            if let (Some(x), Some(y)) = (self.bits(a), self.bits(b)) {
                if let Some(bits) = scalar::binary(op, ty, x, y) {
                    return self.constant(ty, bits);
                }
            } else if let Some(form) = affine_binary(op, ty, &x, &y, extents) {
                return self.integer(ty, &form);
            }
        }
        self.put(Node::Binary { op, ty, a, b })
    }

    pub fn ternary(
        &mut self,
        op: TernaryOp,
        ty: Type,
        [a, b, c]: [Id; 3],
        extents: &Extents,
    ) -> Id {
        if op == TernaryOp::Mad && ty.is_integer() {
            let product = self.binary(BinaryOp::Mul, ty, a, b, extents);
            return self.binary(BinaryOp::Add, ty, product, c, extents);
        }
        self.put(Node::Ternary { op, ty, a, b, c })
    }

    pub fn convert(&mut self, to: Type, from: Type, a: Id, extents: &Extents) -> Id {
        if to == from {
            return a;
        }
        if let Some(form) = self.form(a).cloned().filter(|_| to.is_integer()) {
            if let Some(bits) = self.bits(a) {
                return self.constant(to, scalar::convert(to, from, bits));
            } else if to.bits() <= from.bits() || form.exact(from, extents).is_some() {
                return self.integer(to, &form);
            }
        }
        self.put(Node::Convert { to, from, a })
    }

    pub fn compare(&mut self, condition: Condition, ty: Type, a: Id, b: Id) -> Id {
        match (self.bits(a), self.bits(b)) {
            (Some(a), Some(b)) => self.put(Node::Truth(scalar::compare(condition, ty, a, b))),
            _ => self.put(Node::Compare {
                condition,
                ty,
                a,
                b,
            }),
        }
    }

    pub fn select(&mut self, ty: Type, predicate: Id, on_true: Id, on_false: Id) -> Id {
        match self.node(predicate) {
            Node::Truth(holds) => {
                if *holds {
                    on_true
                } else {
                    on_false
                }
            }
            _ => self.put(Node::Select {
                ty,
                predicate,
                on_true,
                on_false,
            }),
        }
    }

    /// The operands of a node.
    pub fn parts(&self, id: Id) -> Vec<Id> {
        match *self.node(id) {
            Node::Unary { a, .. } | Node::Convert { a, .. } => vec![a],
            Node::Binary { a, b, .. } | Node::Compare { a, b, .. } => vec![a, b],
            Node::Ternary { a, b, c, .. } => vec![a, b, c],
            Node::Select {
                predicate,
                on_true,
                on_false,
                ..
            } => vec![predicate, on_true, on_false],
            _ => Vec::new(),
        }
    }

    /// All nodes that some values depend on, operands first.
    pub fn reachable(&self, roots: impl IntoIterator<Item = Id>) -> Vec<Id> {
        let mut found: BTreeSet<Id> = BTreeSet::new();
        let mut open: Vec<Id> = roots.into_iter().collect();
        while let Some(id) = open.pop() {
            if found.insert(id) {
                open.extend(self.parts(id));
            }
        }
        found.into_iter().collect()
    }

    /// As [`Graph::reachable`], in the order in which the values use their operands: equal
    /// computations give equal orders.
    pub fn in_turn(&self, roots: &[Id]) -> Vec<Id> {
        let mut order = Vec::new();
        let mut begun: BTreeSet<Id> = BTreeSet::new();
        let mut open: Vec<(Id, bool)> = roots.iter().rev().map(|root| (*root, false)).collect();
        while let Some((id, is_done)) = open.pop() {
            if is_done {
                order.push(id);
            } else if begun.insert(id) {
                open.push((id, true));
                open.extend(self.parts(id).into_iter().rev().map(|part| (part, false)));
            }
        }
        order
    }

    /// The value with every form, of integers and of loads' offsets, changed.
    pub fn with_forms(
        &mut self,
        root: Id,
        extents: &Extents,
        change: &mut dyn FnMut(&Affine) -> Affine,
    ) -> Id {
        let mut changed: HashMap<Id, Id> = HashMap::new();
        for id in self.reachable([root]) {
            let new = match self.node(id).clone() {
                Node::Integer { ty, form } => self.integer(ty, &change(&form)),
                Node::Load { ty, buffer, at } => self.put(Node::Load {
                    ty,
                    buffer,
                    at: change(&at),
                }),
                Node::Stored { ty, part, at } => self.put(Node::Stored {
                    ty,
                    part,
                    at: change(&at),
                }),
                node => {
                    let parts: Vec<Id> = self.parts(id).iter().map(|part| changed[part]).collect();
                    self.rebuilt(node, &parts, extents)
                }
            };
            changed.insert(id, new);
        }
        changed[&root]
    }

    /// A node with other operands.
    pub fn rebuilt(&mut self, node: Node, parts: &[Id], extents: &Extents) -> Id {
        match (node, parts) {
            (Node::Unary { op, ty, .. }, &[a]) => self.unary(op, ty, a),
            (Node::Binary { op, ty, .. }, &[a, b]) => self.binary(op, ty, a, b, extents),
            (Node::Ternary { op, ty, .. }, &[a, b, c]) => self.ternary(op, ty, [a, b, c], extents),
            (Node::Convert { to, from, .. }, &[a]) => self.convert(to, from, a, extents),
            (Node::Compare { condition, ty, .. }, &[a, b]) => self.compare(condition, ty, a, b),
            (Node::Select { ty, .. }, &[predicate, on_true, on_false]) => {
                self.select(ty, predicate, on_true, on_false)
            }
            (leaf, _) => self.put(leaf),
        }
    }

    /// The value with a variable replaced by a form.
    pub fn substitute(&mut self, root: Id, var: Var, by: &Affine, extents: &Extents) -> Id {
        self.with_forms(root, extents, &mut |form| form.substitute(var, by))
    }

    /// One value over the index in a run, from the values at its indices, if they have the same
    /// form. Every index is tested.
    pub fn template(&mut self, values: &[Id], extents: &Extents) -> Option<Id> {
        let (&first, rest) = values.split_first()?;
        let &second = match rest.first() {
            Some(second) => second,
            None => return Some(first),
        };
        let root = self.between(first, second, extents)?;
        for (place, value) in values.iter().enumerate() {
            if self.substitute(root, Var::Run, &Affine::constant(place as i128), extents) != *value
            {
                return None;
            }
        }
        Some(root)
    }

    /// The value that is `first` at index 0 of a run and `second` at index 1.
    fn between(&mut self, first: Id, second: Id, extents: &Extents) -> Option<Id> {
        let mut made: BTreeMap<(Id, Id), Id> = BTreeMap::new();
        let mut open = vec![(first, second)];
        while let Some(&(a, b)) = open.last() {
            if made.contains_key(&(a, b)) {
                open.pop();
                continue;
            }
            let pairs: Vec<(Id, Id)> = self.parts(a).into_iter().zip(self.parts(b)).collect();
            let missing: Vec<(Id, Id)> = pairs
                .iter()
                .copied()
                .filter(|pair| !made.contains_key(pair))
                .collect();
            if missing.is_empty() {
                let node = self.between_nodes(a, b, &pairs, &made, extents)?;
                made.insert((a, b), node);
                open.pop();
            } else {
                open.extend(missing);
            }
        }
        made.get(&(first, second)).copied()
    }

    fn between_nodes(
        &mut self,
        a: Id,
        b: Id,
        pairs: &[(Id, Id)],
        made: &BTreeMap<(Id, Id), Id>,
        extents: &Extents,
    ) -> Option<Id> {
        let along = |x: &Affine, y: &Affine| x.plus(&Affine::of(Var::Run), y.constant - x.constant);
        match (self.node(a).clone(), self.node(b).clone()) {
            (
                Node::Integer { ty, form },
                Node::Integer {
                    ty: other,
                    form: next,
                },
            ) if ty == other && form.terms() == next.terms() => {
                Some(self.integer(ty, &along(&form, &next)))
            }
            (
                Node::Load { ty, buffer, at },
                Node::Load {
                    ty: other,
                    buffer: same,
                    at: next,
                },
            ) if (ty, buffer) == (other, same) && at.terms() == next.terms() => {
                Some(self.put(Node::Load {
                    ty,
                    buffer,
                    at: along(&at, &next),
                }))
            }
            (node, other) if pairs.is_empty() => (node == other).then_some(a),
            (node, other) => {
                // The test of all indices verifies that the operations are the same.
                let parts: Option<Vec<Id>> =
                    pairs.iter().map(|pair| made.get(pair).copied()).collect();
                let same = std::mem::discriminant(&node) == std::mem::discriminant(&other);
                Some(self.rebuilt(node, &parts.filter(|_| same)?, extents))
            }
        }
    }
}

/// An operation on forms, if the result is one.
fn affine_binary(
    op: BinaryOp,
    ty: Type,
    a: &Affine,
    b: &Affine,
    extents: &Extents,
) -> Option<Affine> {
    let power = |amount: i128| 1i128 << (amount as u32 % ty.bits());
    match (op, a.as_constant(), b.as_constant()) {
        (BinaryOp::Add, ..) => Some(a.add(b)),
        (BinaryOp::Sub, ..) => Some(a.sub(b)),
        (BinaryOp::Mul, Some(factor), _) => Some(b.scale(factor)),
        (BinaryOp::Mul, _, Some(factor)) => Some(a.scale(factor)),
        (BinaryOp::Shl, _, Some(amount)) => Some(a.scale(power(amount))),
        (BinaryOp::Shr, _, Some(amount)) => {
            divided(ty, a, power(amount), extents).map(|(whole, _)| whole)
        }
        (BinaryOp::Div, _, Some(divisor)) => {
            divided(ty, a, divisor, extents).map(|(whole, _)| whole)
        }
        (BinaryOp::And, _, Some(mask)) if mask >= 0 && (mask + 1).count_ones() == 1 => {
            divided(ty, a, mask + 1, extents).map(|(_, rest)| rest)
        }
        _ => None,
    }
}

fn divided(ty: Type, a: &Affine, divisor: i128, extents: &Extents) -> Option<(Affine, Affine)> {
    let greatest = i128::from(if ty.is_signed() {
        ty.mask() >> 1
    } else {
        ty.mask()
    });
    a.exact(ty, extents)
        .filter(|_| divisor > 0 && divisor <= greatest)?;
    a.split(divisor, extents)
}
