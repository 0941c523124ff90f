//! One lane executed symbolically: the value and address of each store, as values over counters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tectum::Error;

use super::affine::{Affine, Extents, Var};
use super::graph::{Graph, Id, Node};
use super::loops::Loops;
use super::shared_cells::Shared;
use super::{Refusal, Setting};
use crate::{
    Address, BinaryOp, BufferIndex, Checked, Instruction, Program, Register, TernaryOp, Type, Write,
};

/// Why a lane is not followed to its end.
pub enum StopReason {
    Refused(Refusal),
    /// The program cannot be right for this launch and these sizes.
    Invalid(Error),
    /// The lanes must be counted as rows of this many.
    Split(u64),
}

pub type ExecutionResult<T> = Result<T, StopReason>;

/// The state of a lane.
#[derive(Clone)]
pub struct State {
    pub registers: Vec<Option<Id>>,
    pub predicates: Vec<Option<Id>>,
    /// Registers that hold this only in the first lanes, as many as given.
    pub limits: BTreeMap<Register, u64>,
}

/// The counters around an instruction, with extents.
pub type Scope = Vec<(Var, u64)>;

/// A store, done once for each combination of its scope.
#[derive(Debug, Clone)]
pub struct Store {
    pub instruction: usize,
    pub ty: Type,
    pub buffer: BufferIndex,
    pub at: Affine,
    pub value: Id,
    pub scope: Scope,
    pub own: bool,
}

/// A followed loop: its registers before the first iteration and at the end of each.
#[derive(Debug, Clone, Default)]
pub struct LoopRecord {
    pub extent: u64,
    /// Whether the lanes share the iterations: the extent is the total, counted by
    /// [`Var::Strided`].
    pub strided: bool,
    pub carried: HashMap<Register, (Option<Id>, Id)>,
}

pub struct SymbolicExecutor<'a> {
    pub program: &'a Program,
    pub setting: &'a Setting<'a>,
    pub graph: Graph,
    pub state: State,
    pub extents: Extents,
    /// Loops around the instruction.
    pub open: Vec<Var>,
    /// The last store of a lane to each address in each scope.
    pub stores: HashMap<(BufferIndex, Affine, Scope), Store>,
    pub turns: HashMap<u32, LoopRecord>,
    pub next_turn: u32,
    pub loops: Loops,
    /// Above 0 while a loop's registers are analysed: nothing is recorded.
    pub probing: u32,
    /// Buffers whose contents were used.
    pub used: BTreeSet<BufferIndex>,
    split: Option<u64>,
    /// Whether the last row of lanes may be partial, so that rows and columns cover more lanes than
    /// exist.
    pub has_partial_row: bool,
    pub shared: Shared,
    /// The lanes in a region that others skip.
    pub part: Option<u64>,
    elements: Option<u64>,
    /// The value that this lane stored last at an address.
    memory: HashMap<(BufferIndex, Affine), Id>,
    /// The type of the accesses to each buffer, or `None` for several types.
    access_types: HashMap<BufferIndex, Option<Type>>,
}

impl<'a> SymbolicExecutor<'a> {
    pub fn new(
        checked: &'a Checked,
        setting: &'a Setting<'a>,
        elements: Option<u64>,
        split: Option<u64>,
    ) -> Self {
        let program = checked.program();
        let state = State {
            registers: vec![None; 256],
            predicates: vec![None; 16],
            limits: BTreeMap::new(),
        };
        let (graph, extents) = (Graph::default(), Extents::new());
        let mut follower = SymbolicExecutor {
            program,
            setting,
            graph,
            state,
            extents,
            open: Vec::new(),
            stores: HashMap::new(),
            turns: HashMap::new(),
            next_turn: 0,
            loops: Loops::of(program),
            probing: 0,
            used: BTreeSet::new(),
            split,
            shared: Shared::default(),
            part: None,
            has_partial_row: split
                .is_some_and(|columns| !setting.launch.lanes().is_multiple_of(columns)),
            elements,
            memory: HashMap::new(),
            access_types: HashMap::new(),
        };
        follower.enter();
        follower
    }

    /// The preloaded registers.
    fn enter(&mut self) {
        let launch = self.setting.launch;
        let (lanes, block) = (launch.lanes(), launch.block_lanes());
        match self.split {
            Some(columns) => {
                self.extents.insert(Var::Column, columns);
                self.extents.insert(Var::Row, lanes.div_ceil(columns));
            }
            None => drop(self.extents.insert(Var::Lane, lanes)),
        }
        let number = self.lane();
        let whole = |ty: Type, form: &Affine, graph: &mut Graph| graph.integer(ty, form);
        let number_id = whole(Type::U64, &number, &mut self.graph);
        self.set(Register::GLOBAL_LANE, number_id);
        let size = self.graph.constant(Type::U32, u64::from(launch.block[0]));
        self.set(Register::BLOCK_SIZE, size);
        let flat = launch.block[1..] == [1, 1] && launch.grid[1..] == [1, 1];
        let (lane, in_grid) = match self.split {
            _ if !flat => (None, None),
            _ if block == 1 => (Some(Affine::default()), Some(number)),
            _ if launch.blocks() == 1 => (Some(number), Some(Affine::default())),
            Some(columns) if columns == block => (
                Some(self.varying(Var::Column)),
                Some(self.varying(Var::Row)),
            ),
            _ => (None, None),
        };
        for (register, form) in [(Register::LANE, lane), (Register::BLOCK, in_grid)] {
            let id = form.map(|form| self.graph.integer(Type::U32, &form));
            self.state.registers[usize::from(register.0)] = id;
        }
    }

    /// A variable, or 0 if that is its only value.
    fn varying(&self, var: Var) -> Affine {
        if self.extents.get(&var) == Some(&1) {
            Affine::default()
        } else {
            Affine::of(var)
        }
    }

    /// The lane's number.
    pub fn lane(&self) -> Affine {
        match self.split {
            Some(columns) => self
                .varying(Var::Row)
                .scale(i128::from(columns))
                .add(&self.varying(Var::Column)),
            None => self.varying(Var::Lane),
        }
    }

    pub fn refuse<T>(&self, instruction: usize, reason: impl Into<String>) -> ExecutionResult<T> {
        Err(StopReason::Refused(Refusal {
            instruction: Some(instruction),
            reason: reason.into(),
        }))
    }

    pub fn get(&mut self, register: Register, instruction: usize) -> ExecutionResult<Id> {
        if let Some(limit) = self
            .state
            .limits
            .get(&register)
            .copied()
            .filter(|limit| *limit < self.lanes())
        {
            return self.refuse(
                instruction,
                format!("{register} differs between lanes from lane {limit} on"),
            );
        } else if let Some(id) = self.state.registers[usize::from(register.0)] {
            return Ok(id);
        }
        let launch = self.setting.launch;
        if matches!(register, Register::LANE | Register::BLOCK)
            && self.split.is_none()
            && launch.block[1..] == [1, 1]
            && launch.grid[1..] == [1, 1]
        {
            return Err(StopReason::Split(launch.block_lanes()));
        }
        self.refuse(
            instruction,
            format!("the value of {register} is not known here"),
        )
    }

    pub fn set(&mut self, register: Register, id: Id) {
        self.state.registers[usize::from(register.0)] = Some(id);
        match self.part {
            Some(lanes) => drop(self.state.limits.insert(register, lanes)),
            None => drop(self.state.limits.remove(&register)),
        }
    }

    /// Follows an instruction that neither jumps nor ends.
    pub fn step(&mut self, at: usize) -> ExecutionResult<()> {
        use Instruction as I;
        let instruction = self.program.instructions()[at];
        match instruction {
            I::LoadGlobal { ty, dst, address } => {
                let id = self.load(at, ty, address)?;
                self.set(dst, id);
            }
            I::StoreGlobal { ty, src, address } => self.store(at, ty, src, address)?,
            I::Compare {
                condition,
                ty,
                dst,
                a,
                b,
            } => {
                let (a, b) = (self.get(a, at)?, self.get(b, at)?);
                self.state.predicates[usize::from(dst.0)] =
                    Some(self.graph.compare(condition, ty, a, b));
            }
            I::Fence { .. } | I::PhaseAdvance { .. } => {}
            I::LoadShared { .. } | I::StoreShared { .. } | I::Barrier { .. } => {
                self.meet(at, instruction)?
            }
            I::PoolAllocate { .. }
            | I::PoolFree { .. }
            | I::PoolLoad { .. }
            | I::PoolStore { .. } => {
                return self.refuse(at, "recognition does not support pools");
            }
            I::Call { .. } | I::Return => {
                return self.refuse(at, "recognition does not support calls");
            }
            I::ResonanceAccumulate { .. } => {}
            _ => self.compute(at, &instruction)?,
        }
        Ok(())
    }

    fn compute(&mut self, at: usize, instruction: &Instruction) -> ExecutionResult<()> {
        use Instruction as I;
        let (dst, id) = match *instruction {
            I::Move { dst, src, .. } => (dst, self.get(src, at)?),
            I::MoveImmediate { ty, dst, bits } => (dst, self.graph.constant(ty, bits)),
            I::Convert { to, from, dst, src } => {
                let a = self.get(src, at)?;
                (dst, self.graph.convert(to, from, a, &self.extents))
            }
            I::Unary { op, ty, dst, src } => {
                let a = self.get(src, at)?;
                (dst, self.graph.unary(op, ty, a))
            }
            I::Binary { op, ty, dst, a, b } => (dst, self.binary(at, op, ty, [a, b])?),
            I::Ternary {
                op,
                ty,
                dst,
                a,
                b,
                c,
            } => (dst, self.ternary(at, op, ty, [a, b, c])?),
            I::Select {
                ty,
                dst,
                predicate,
                on_true,
                on_false,
            } => {
                let (on_true, on_false) = (self.get(on_true, at)?, self.get(on_false, at)?);
                let Some(predicate) = self.state.predicates[usize::from(predicate.0)] else {
                    return self.refuse(at, format!("the value of {predicate} is not known here"));
                };
                (dst, self.graph.select(ty, predicate, on_true, on_false))
            }
            I::Reduce {
                op,
                ty,
                dst,
                first,
                count,
            } => {
                let mut so_far = self.get(first, at)?;
                for place in 1..count as u8 {
                    let next = self.get(Register(first.0 + place), at)?;
                    so_far = self
                        .graph
                        .binary(op.step(), ty, so_far, next, &self.extents);
                }
                (dst, so_far)
            }
            _ => return self.unknown(at, instruction),
        };
        self.set(dst, id);
        Ok(())
    }

    /// Results of the class, phase and accumulator group: no shape may depend on them.
    fn unknown(&mut self, at: usize, instruction: &Instruction) -> ExecutionResult<()> {
        match instruction.write() {
            Some(Write::Register(register, ty)) => {
                let id = self.graph.put(Node::Unknown {
                    instruction: at,
                    ty,
                });
                self.set(register, id);
            }
            Some(Write::Predicate(predicate)) => {
                self.state.predicates[usize::from(predicate.0)] = None
            }
            None => return self.refuse(at, "recognition does not support the instruction"),
        }
        Ok(())
    }

    fn binary(
        &mut self,
        at: usize,
        op: BinaryOp,
        ty: Type,
        [a, b]: [Register; 2],
    ) -> ExecutionResult<Id> {
        let (a, b) = (self.get(a, at)?, self.get(b, at)?);
        let divisor = self.graph.form(b).and_then(Affine::as_constant);
        let is_division = op == BinaryOp::Div && ty.is_integer();
        if is_division && divisor.is_none_or(|divisor| divisor == 0) {
            return self.refuse(at, "the divisor may be 0");
        }
        let id = self.graph.binary(op, ty, a, b, &self.extents);
        self.split_by(a, op, ty, divisor, id)?;
        Ok(id)
    }

    /// Requests rows of lanes if the lane's number was divided and the result is not a form.
    fn split_by(
        &self,
        a: Id,
        op: BinaryOp,
        ty: Type,
        divisor: Option<i128>,
        result: Id,
    ) -> ExecutionResult<()> {
        let lanes = self.extents.get(&Var::Lane).copied().unwrap_or(0);
        let is_lane = self
            .graph
            .form(a)
            .is_some_and(|form| form.is_var(Var::Lane));
        let columns = divisor.and_then(|divisor| match op {
            BinaryOp::Div => u64::try_from(divisor).ok(),
            BinaryOp::Shr => 1u64.checked_shl(divisor as u32 % ty.bits()),
            BinaryOp::And => u64::try_from(divisor + 1).ok(),
            _ => None,
        });
        match columns {
            Some(columns)
                if is_lane
                    && self.split.is_none()
                    && self.graph.form(result).is_none()
                    && columns > 1
                    && lanes.is_multiple_of(columns) =>
            {
                Err(StopReason::Split(columns))
            }
            _ => Ok(()),
        }
    }

    fn ternary(
        &mut self,
        at: usize,
        op: TernaryOp,
        ty: Type,
        operands: [Register; 3],
    ) -> ExecutionResult<Id> {
        let [a, b, c] = operands.map(|register| self.get(register, at));
        Ok(self.graph.ternary(op, ty, [a?, b?, c?], &self.extents))
    }

    fn load(&mut self, at: usize, ty: Type, address: Address) -> ExecutionResult<Id> {
        let (buffer, form, own) = self.place(at, ty, address, false)?;
        if self.probing > 0 {
            return Ok(self.graph.put(Node::Load {
                ty,
                buffer,
                at: form,
            }));
        }
        self.accessed(at, ty, buffer, &form, own)?;
        if let Some(bits) = self.known(ty, buffer, &form) {
            self.used.insert(buffer);
            return Ok(self.graph.constant(ty, bits));
        }
        match self.memory.get(&(buffer, form.clone())) {
            Some(stored) => Ok(*stored),
            None => Ok(self.graph.put(Node::Load {
                ty,
                buffer,
                at: form,
            })),
        }
    }

    /// An integer of a buffer whose contents are given and that the program does not change.
    fn known(&self, ty: Type, buffer: BufferIndex, form: &Affine) -> Option<u64> {
        let bytes = self
            .setting
            .contents
            .iter()
            .find(|(index, _)| *index == buffer)
            .map(|(_, bytes)| bytes)?;
        let first = usize::try_from(form.as_constant()?)
            .ok()
            .filter(|_| ty.is_integer() && !self.program.buffer(buffer).access.writes())?;
        let value = bytes.get(first..first.checked_add(ty.bytes() as usize)?)?;
        Some(
            value
                .iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
        )
    }

    fn store(
        &mut self,
        at: usize,
        ty: Type,
        src: Register,
        address: Address,
    ) -> ExecutionResult<()> {
        let (buffer, form, own) = self.place(at, ty, address, true)?;
        let value = self.get(src, at)?;
        if self.part.is_some() || self.is_strided() {
            return self.refuse(
                at,
                "only some lanes store this, or lanes share the iterations",
            );
        }
        if self.probing > 0 {
            return Ok(());
        }
        self.accessed(at, ty, buffer, &form, own)?;
        self.memory.insert((buffer, form.clone()), value);
        let scope = self.scope(at, own)?;
        let store = Store {
            instruction: at,
            ty,
            buffer,
            at: form.clone(),
            value,
            scope: scope.clone(),
            own,
        };
        self.stores.insert((buffer, form, scope), store);
        Ok(())
    }

    /// The counters around an instruction: lanes, of which only those with an own element store to
    /// it, and loops.
    fn scope(&self, at: usize, own: bool) -> ExecutionResult<Scope> {
        let mut scope = Vec::new();
        let lanes = [Var::Lane, Var::Row, Var::Column]
            .into_iter()
            .filter_map(|var| Some((var, *self.extents.get(&var)?)));
        for (var, extent) in lanes {
            let elements = self.elements.filter(|_| own);
            let limited = match (var, elements, self.split) {
                (Var::Lane, Some(elements), _) => extent.min(elements),
                (Var::Row, Some(elements), Some(columns)) if elements.is_multiple_of(columns) => {
                    extent.min(elements / columns)
                }
                (Var::Row, Some(_), _) => {
                    return self.refuse(at, "the elements are not whole rows of lanes");
                }
                (Var::Row, None, _) if self.has_partial_row => {
                    return self.refuse(at, "the lanes are not whole rows");
                }
                _ => extent,
            };
            scope.push((var, limited));
        }
        scope.extend(
            self.open
                .iter()
                .filter_map(|var| Some((*var, *self.extents.get(var)?))),
        );
        Ok(scope)
    }

    /// The buffer and the offset of an address, and whether it is the lane's own element.
    fn place(
        &mut self,
        at: usize,
        ty: Type,
        address: Address,
        is_store: bool,
    ) -> ExecutionResult<(BufferIndex, Affine, bool)> {
        let constant = |bytes: u64| Affine::constant(i128::from(bytes));
        Ok(match address {
            Address::Own { .. } if self.is_strided() => {
                return self.refuse(
                    at,
                    "the own element is accessed in a loop whose iteration count differs by lane",
                );
            }
            Address::Own { buffer } => (buffer, self.lane().scale(i128::from(ty.bytes())), true),
            Address::Constant { buffer, bytes } => (buffer, constant(bytes), false),
            Address::Indexed { buffer, offset } => (buffer, self.offset(at, offset)?, false),
            Address::Handle { handle, bytes } => {
                (self.handle(at, handle, is_store)?, constant(bytes), false)
            }
            Address::Computed { handle, offset } => (
                self.handle(at, handle, is_store)?,
                self.offset(at, offset)?,
                false,
            ),
            Address::Phi(phi) => match self.program.boundary() {
                Some(buffer) => (buffer, constant(phi.offset()), false),
                None => return self.refuse(at, "there is no boundary"),
            },
        })
    }

    /// Whether lanes share the iterations of the enclosing loop.
    fn is_strided(&self) -> bool {
        self.open.iter().any(|var| matches!(var, Var::Strided(_)))
    }

    pub fn offset(&mut self, at: usize, register: Register) -> ExecutionResult<Affine> {
        let id = self.get(register, at)?;
        match self.graph.form(id).cloned() {
            Some(form) => Ok(form),
            None => self.refuse(at, format!("the offset in {register} is not a sum of multiples of the lane and the iterations")),
        }
    }

    fn handle(
        &mut self,
        at: usize,
        register: Register,
        is_store: bool,
    ) -> ExecutionResult<BufferIndex> {
        let id = self.get(register, at)?;
        let handle = self.graph.form(id).and_then(Affine::as_constant);
        let index = handle
            .and_then(|handle| u32::try_from(handle - 1).ok())
            .map(BufferIndex);
        let allowed = index.filter(|index| {
            self.program
                .buffers()
                .get(index.0 as usize)
                .is_some_and(|buffer| {
                    if is_store {
                        buffer.access.writes()
                    } else {
                        buffer.access.reads()
                    }
                })
        });
        allowed.map_or_else(|| self.refuse(at, format!("the handle in {register} is not the constant one of a buffer that allows the access")), Ok)
    }

    /// Tests an access against the size of its buffer; one that always leaves it is a
    /// contradiction.
    fn accessed(
        &mut self,
        at: usize,
        ty: Type,
        buffer: BufferIndex,
        form: &Affine,
        own: bool,
    ) -> ExecutionResult<()> {
        let seen = self.access_types.entry(buffer).or_insert(Some(ty));
        if *seen != Some(ty) {
            *seen = None;
        }
        if own {
            return Ok(());
        } else if self.has_partial_row
            && form
                .terms()
                .iter()
                .any(|(var, _)| matches!(var, Var::Row | Var::Column))
        {
            return self.refuse(at, "the lanes are not whole rows");
        }
        let Some((low, high)) = form.range(&self.extents) else {
            return self.refuse(at, format!("the range of the offset {form} is not known"));
        };
        let size = i128::from(self.setting.sizes[buffer.0 as usize]);
        let width = i128::from(ty.bytes());
        let is_aligned = form.constant % width == 0
            && form.terms().iter().all(|(_, factor)| factor % width == 0);
        if low < 0 {
            return self.refuse(at, format!("the offset {form} begins below 0"));
        } else if high + width > size {
            let name = &self.program.buffer(buffer).name;
            let message = format!(
                "{}: instruction {at} `{}` reaches byte {} of the {size} of buffer {name}",
                self.program.name(),
                self.text(at),
                high + width
            );
            return Err(StopReason::Invalid(Error::invalid(message)));
        } else if !is_aligned {
            return self.refuse(
                at,
                format!("the offset {form} is not a multiple of the {width} bytes of {ty}"),
            );
        }
        Ok(())
    }

    fn text(&self, at: usize) -> String {
        self.program
            .instruction_text(&self.program.instructions()[at])
    }

    /// Whether all accesses to a buffer are of one type.
    pub fn is_of_one_type(&self, buffer: BufferIndex) -> bool {
        self.access_types.get(&buffer).is_none_or(Option::is_some)
    }

    pub fn elements(&self) -> Option<u64> {
        self.elements
    }

    pub fn columns(&self) -> Option<u64> {
        self.split
    }
}
