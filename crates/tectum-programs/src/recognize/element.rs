//! A map as the value of one element: a graph over the element's number, from which its program is
//! generated.

use std::collections::{BTreeMap, HashMap};

use super::affine::{Affine, Extents, Var, flat};
use super::cover::Results;
use super::graph::{Graph, Id, Node};
use crate::{
    Address, BinaryOp, BufferDeclaration, BufferIndex, Instruction, Predicate, Program,
    ProgramParts, Register, Type,
};

/// The values stored to one element of each of some buffers. The only variable of the graph is
/// [`Var::Lane`], the element's number.
#[derive(Debug, Clone)]
pub struct Elements {
    pub graph: Graph,
    pub count: u64,
    pub outputs: Vec<(BufferIndex, Type, Id)>,
}

/// The registers for values; those above are preloaded.
const MAX_REGISTERS: usize = 252;

/// Makes the elements of results: loads must be of the own element or of an offset that is the same
/// for all.
pub fn elements(
    results: &Results,
    sizes: &[u64],
    name: impl Fn(BufferIndex) -> String,
) -> Result<Elements, (usize, String)> {
    let mut graph = results.graph.clone();
    let mut outputs = Vec::with_capacity(results.outputs.len());
    for output in &results.outputs {
        let mut numbered = Numbered {
            results,
            sizes,
            changed: HashMap::new(),
        };
        let value = numbered
            .value(&mut graph, output.value)
            .map_err(|reason| (output.instruction, reason))?;
        for id in graph.reachable([value]) {
            let Node::Load { buffer, ty, at } = graph.node(id) else {
                continue;
            };
            let is_own = *at == Affine::of(Var::Lane).scale(i128::from(ty.bytes()));
            if results.stores(*buffer) && !is_own {
                return Err((
                    output.instruction,
                    format!(
                        "buffer {} is stored to and loaded at {at}, an element of another",
                        name(*buffer)
                    ),
                ));
            }
        }
        outputs.push((output.buffer, output.ty, value));
    }
    Ok(Elements {
        graph,
        count: results.elements(),
        outputs,
    })
}

/// Rewrites forms over counters as forms over the element's number.
struct Numbered<'a> {
    results: &'a Results,
    sizes: &'a [u64],
    changed: HashMap<Id, Id>,
}

impl Numbered<'_> {
    fn value(&mut self, graph: &mut Graph, root: Id) -> Result<Id, String> {
        let extents = Extents::from([(Var::Lane, self.results.elements())]);
        for id in graph.reachable([root]) {
            let new = match graph.node(id).clone() {
                Node::Integer { ty, form } => {
                    let form = self
                        .number(&form)
                        .ok_or_else(|| format!("{form} does not follow the elements' order"))?;
                    graph.integer(ty, &form)
                }
                Node::Load { ty, buffer, at } => {
                    let at = self.offset(ty, buffer, &at)?;
                    graph.put(Node::Load { ty, buffer, at })
                }
                Node::Carried { register, .. } => {
                    return Err(format!("{register} is carried across iterations"));
                }
                Node::Fold { register, .. } => {
                    return Err(format!("{register} is the result of a loop"));
                }
                Node::Stored { .. } => {
                    return Err("it depends on what lanes stored in shared memory".to_owned());
                }
                Node::Unknown { instruction, .. } => {
                    return Err(format!(
                        "it depends on instruction {instruction}, which recognition does not support"
                    ));
                }
                node => {
                    let parts: Vec<Id> = graph
                        .parts(id)
                        .iter()
                        .map(|part| self.changed[part])
                        .collect();
                    graph.rebuilt(node, &parts, &extents)
                }
            };
            self.changed.insert(id, new);
        }
        Ok(self.changed[&root])
    }

    /// A form as c + f · (the element's number).
    fn number(&self, form: &Affine) -> Option<Affine> {
        let form = form.reduced(&self.results.extents);
        let Some((fastest, _)) = self.results.order.first() else {
            return form.as_constant().map(Affine::constant);
        };
        let factor = form.factor(*fastest);
        let rest = form.sub(&flat(&self.results.order, factor)).as_constant()?;
        Some(Affine::constant(rest).plus(&Affine::of(Var::Lane), factor))
    }

    /// The offset of a load: of the own element, or a constant.
    fn offset(&self, ty: Type, buffer: BufferIndex, at: &Affine) -> Result<Affine, String> {
        let (width, size, count) = (
            i128::from(ty.bytes()),
            self.sizes[buffer.0 as usize],
            self.results.elements(),
        );
        let own = Affine::of(Var::Lane).scale(width);
        let number = self
            .number(at)
            .ok_or_else(|| format!("the load at {at} does not follow the elements' order"))?;
        let is_all = count.checked_mul(ty.bytes()) == Some(size);
        match number.as_constant() {
            Some(0) if count == 1 && is_all => Ok(own),
            Some(_) => Ok(number),
            None if number == own && is_all => Ok(own),
            None if number == own => Err(format!(
                "the load at {at} covers a part of its buffer's {size} bytes"
            )),
            None => Err(format!("the load at {at} is not of the own element")),
        }
    }
}

/// Source of the element's number.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// It is the lane's number, and `[b]` is the own element.
    Lane,
    /// It is in a u64 register; the two after it are free for offsets.
    Register(Register),
}

/// Instructions with the registers of their values.
pub struct Written {
    pub code: Vec<Instruction>,
    /// The registers that hold the roots, in their order.
    pub roots: Vec<Register>,
}

/// Writes the instructions that compute some values of an element in registers below `most`.
pub fn write(graph: &Graph, roots: &[Id], number: Number, most: usize) -> Result<Written, String> {
    let order = graph.in_turn(roots);
    let mut uses: BTreeMap<Id, u32> = BTreeMap::new();
    let operands = |id: Id| match graph.node(id) {
        Node::Select {
            predicate,
            on_true,
            on_false,
            ..
        } => [graph.parts(*predicate), vec![*on_true, *on_false]].concat(),
        Node::Compare { .. } => Vec::new(),
        _ => graph.parts(id),
    };
    order
        .iter()
        .flat_map(|id| operands(*id))
        .chain(roots.iter().copied())
        .for_each(|id| *uses.entry(id).or_insert(0) += 1);
    let mut writer = Writer {
        graph,
        number,
        code: Vec::new(),
        held: BTreeMap::new(),
        free: (0..most.min(MAX_REGISTERS))
            .rev()
            .map(|place| Register(place as u8))
            .collect(),
    };
    for id in order {
        if !uses.contains_key(&id)
            || matches!(graph.node(id), Node::Compare { .. } | Node::Truth(_))
        {
            continue;
        }
        let parts: Vec<Register> = operands(id).iter().map(|part| writer.held[part]).collect();
        for part in operands(id) {
            if let Some(left) = uses.get_mut(&part) {
                *left -= 1;
                if *left == 0 {
                    writer.free.extend(writer.held.get(&part).copied());
                }
            }
        }
        let dst = writer
            .free
            .pop()
            .ok_or_else(|| format!("an element needs more than {most} registers"))?;
        writer.held.insert(id, dst);
        writer.node(id, dst, &parts)?;
    }
    let roots = roots.iter().map(|root| writer.held[root]).collect();
    Ok(Written {
        code: writer.code,
        roots,
    })
}

struct Writer<'a> {
    graph: &'a Graph,
    number: Number,
    code: Vec<Instruction>,
    held: BTreeMap<Id, Register>,
    free: Vec<Register>,
}

impl Writer<'_> {
    fn node(&mut self, id: Id, dst: Register, parts: &[Register]) -> Result<(), String> {
        use Instruction as I;
        let instruction = match (self.graph.node(id), parts) {
            (Node::Float { ty, bits }, _) => I::MoveImmediate {
                ty: *ty,
                dst,
                bits: *bits,
            },
            (Node::Integer { ty, form }, _) => return self.integer(*ty, form, dst),
            (Node::Load { ty, buffer, at }, _) => I::LoadGlobal {
                ty: *ty,
                dst,
                address: self.address(*buffer, at),
            },
            (Node::Unary { op, ty, .. }, &[src]) => I::Unary {
                op: *op,
                ty: *ty,
                dst,
                src,
            },
            (Node::Binary { op, ty, .. }, &[a, b]) => I::Binary {
                op: *op,
                ty: *ty,
                dst,
                a,
                b,
            },
            (Node::Ternary { op, ty, .. }, &[a, b, c]) => I::Ternary {
                op: *op,
                ty: *ty,
                dst,
                a,
                b,
                c,
            },
            (Node::Convert { to, from, .. }, &[src]) => I::Convert {
                to: *to,
                from: *from,
                dst,
                src,
            },
            (Node::Select { ty, predicate, .. }, &[a, b, on_true, on_false]) => {
                let Node::Compare {
                    condition,
                    ty: compared,
                    ..
                } = self.graph.node(*predicate)
                else {
                    return Err("a selection without a comparison".to_owned());
                };
                self.code.push(I::Compare {
                    condition: *condition,
                    ty: *compared,
                    dst: Predicate(0),
                    a,
                    b,
                });
                I::Select {
                    ty: *ty,
                    dst,
                    predicate: Predicate(0),
                    on_true,
                    on_false,
                }
            }
            (node, _) => return Err(format!("{node:?} has no instruction")),
        };
        self.code.push(instruction);
        Ok(())
    }

    /// The address of a load; a variable offset is computed in the second free register after the
    /// number.
    fn address(&mut self, buffer: BufferIndex, at: &Affine) -> Address {
        match (at.as_constant(), self.number) {
            (Some(bytes), _) => Address::Constant {
                buffer,
                bytes: bytes as u64,
            },
            (None, Number::Lane) => Address::Own { buffer },
            (None, Number::Register(number)) => {
                let (width, offset) = (Register(number.0 + 1), Register(number.0 + 2));
                self.code.push(Instruction::MoveImmediate {
                    ty: Type::U64,
                    dst: width,
                    bits: at.factor(Var::Lane) as u64,
                });
                self.code.push(Instruction::Binary {
                    op: BinaryOp::Mul,
                    ty: Type::U64,
                    dst: offset,
                    a: number,
                    b: width,
                });
                Address::Indexed { buffer, offset }
            }
        }
    }

    /// c + f · number, computed modulo 2⁶⁴; a type uses the low bits.
    fn integer(&mut self, ty: Type, form: &Affine, dst: Register) -> Result<(), String> {
        if let Some(constant) = form.as_constant() {
            self.code.push(Instruction::MoveImmediate {
                ty,
                dst,
                bits: constant as u64 & ty.mask(),
            });
            return Ok(());
        }
        let number = match self.number {
            Number::Lane => Register::GLOBAL_LANE,
            Number::Register(number) => number,
        };
        let scratch = self
            .free
            .last()
            .copied()
            .ok_or("an element needs more registers than there are")?;
        let mut put = |bits: i128| {
            self.code.push(Instruction::MoveImmediate {
                ty: Type::U64,
                dst: scratch,
                bits: bits as u64,
            })
        };
        put(form.factor(Var::Lane));
        self.code.push(Instruction::Binary {
            op: BinaryOp::Mul,
            ty: Type::U64,
            dst,
            a: number,
            b: scratch,
        });
        if form.constant != 0 {
            self.code.push(Instruction::MoveImmediate {
                ty: Type::U64,
                dst: scratch,
                bits: form.constant as u64,
            });
            self.code.push(Instruction::Binary {
                op: BinaryOp::Add,
                ty: Type::U64,
                dst,
                a: dst,
                b: scratch,
            });
        }
        if ty != Type::U64 {
            self.code.push(Instruction::Convert {
                to: ty,
                from: Type::U64,
                dst,
                src: dst,
            });
        }
        Ok(())
    }
}

impl Elements {
    /// The program of one lane per element.
    pub fn program(&self, name: &str, buffers: &[BufferDeclaration]) -> Result<Program, String> {
        let roots: Vec<Id> = self.outputs.iter().map(|(_, _, value)| *value).collect();
        let Written { mut code, roots } = write(&self.graph, &roots, Number::Lane, MAX_REGISTERS)?;
        for ((buffer, ty, _), src) in self.outputs.iter().zip(roots) {
            code.push(Instruction::StoreGlobal {
                ty: *ty,
                src,
                address: Address::Own { buffer: *buffer },
            });
        }
        let parts = ProgramParts {
            name: name.to_owned(),
            buffers: buffers.to_vec(),
            instructions: code,
            ..ProgramParts::default()
        };
        Program::new(parts).map_err(|error| error.to_string())
    }
}
