//! A whole kernel: its bindings and parameters, and the body around a program's statements.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use tectum::kernel::{MAX_BINDINGS, WORKGROUP};
use tectum::{ContentHash, DType, Kernel, KernelBuilder};

use super::expression::variable;
use super::memory::{Memory, Sizes, Space};
use super::statement::Statements;
use super::{
    Bounds, Shape, Unsupported, covers, dispatch, faults, library, native, reports_faults,
    structured,
};
use crate::block::PreparedProgram;
use crate::{Address, BufferAccess, Checked, Instruction, Program, Register, Type, Write};

/// The names of the buffers' bindings.
const BUFFERS: [&str; MAX_BINDINGS] = ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"];
/// The parameters that hold their bytes.
const BYTES: [&str; MAX_BINDINGS] = [
    "bytes_0", "bytes_1", "bytes_2", "bytes_3", "bytes_4", "bytes_5", "bytes_6", "bytes_7",
];
/// Other parameters of a launch.
const LAUNCH: [&str; 7] = [
    "lanes",
    "blocks",
    "block_lanes",
    "block_x",
    "grid_x",
    "zero",
    "max_turns",
];

/// The kernel of a program.
pub fn kernel(checked: &Checked, shape: Shape, bounds: Bounds) -> Result<Arc<Kernel>, Unsupported> {
    let program = checked.program();
    let shared = if let Shape::Blocks { shared_bytes, .. } = shape {
        shared_bytes
    } else {
        0
    };
    let memory = Memory::new(
        program,
        bounds,
        Sizes {
            shared,
            pool: program.pool_bytes(),
        },
        atomic_spaces(program),
    );
    let mut statements = Statements {
        program,
        bounds,
        memory,
    };
    let body = body(&mut statements, shape, bounds)?;
    let builder = define(checked, bounds, |space| statements.memory.is_atomic(space)).body(body);
    finish(builder, checked, shape, bounds).map_err(|error| Unsupported::new(error.to_string()))
}

/// A kernel without device code.
pub fn native_kernel(
    checked: &Checked,
    shape: Shape,
    bounds: Bounds,
    why: &Unsupported,
) -> tectum::Result<Arc<Kernel>> {
    // Two programs differ in the kernel's text, and so in its hash, even without code in it.
    let program = ContentHash::of(&checked.program().to_bytes());
    let builder = define(checked, bounds, |_| false).body(format!(
        "// program {program} runs on the CPU alone: {}\n",
        why.reason
    ));
    finish(builder, checked, shape, bounds)
}

fn finish(
    builder: KernelBuilder,
    checked: &Checked,
    shape: Shape,
    bounds: Bounds,
) -> tectum::Result<Arc<Kernel>> {
    let block_bytes = if let Shape::Blocks { shared_bytes, .. } = shape {
        Some(shared_bytes)
    } else {
        None
    };
    // SAFETY: an access that the program's bounds do not prove is tested or clamped to the last
    // word by the code itself, and its loops end at the launch's limit of iterations.
    let builder = unsafe { builder.trusted() };
    let builder = builder.revision(env!("TECTUM_REVISION")).parsed_by_tests();
    builder
        .data(Arc::new(PreparedProgram::new(checked, block_bytes, bounds)))
        .native(native::run)
}

fn define(checked: &Checked, bounds: Bounds, is_atomic: impl Fn(Space) -> bool) -> KernelBuilder {
    let program = checked.program();
    let name = if program.name().is_empty() {
        "program"
    } else {
        program.name()
    };
    let mut builder = Kernel::define(format!("program_{name}"));
    for (index, (buffer, binding)) in program.buffers().iter().zip(BUFFERS).enumerate() {
        builder = match buffer.access {
            BufferAccess::Read => builder.read(binding, DType::U32),
            _ if is_atomic(Space::Buffer(index)) => builder.atomic(binding, DType::U32),
            BufferAccess::Write if covers(program, index) => builder.write(binding, DType::U32),
            _ => builder.read_write(binding, DType::U32),
        };
    }
    if reports_faults(program, bounds) {
        builder = builder.atomic("fault_words", DType::U32);
    }
    let names = LAUNCH
        .into_iter()
        .chain(BYTES.into_iter().take(program.buffers().len()));
    names.fold(builder, |builder, name| builder.param(name, DType::U32))
}

/// Memories with stores to parts of words.
fn atomic_spaces(program: &Program) -> Vec<Space> {
    let mut spaces = BTreeSet::new();
    for instruction in program.instructions() {
        match instruction {
            Instruction::StoreShared { ty, .. } if ty.bytes() < 4 => {
                spaces.insert(Space::Shared);
            }
            Instruction::StoreGlobal { ty, address, .. } if ty.bytes() < 4 => match address {
                Address::Handle { .. } | Address::Computed { .. } => {
                    let writable = program
                        .buffers()
                        .iter()
                        .enumerate()
                        .filter(|(_, buffer)| buffer.access.writes());
                    spaces.extend(writable.map(|(index, _)| Space::Buffer(index)));
                }
                _ => {
                    let buffer = address.buffer().or_else(|| program.boundary());
                    spaces.extend(buffer.map(|buffer| Space::Buffer(buffer.0 as usize)));
                }
            },
            _ => {}
        }
    }
    spaces.into_iter().collect()
}

fn body(
    statements: &mut Statements<'_>,
    shape: Shape,
    bounds: Bounds,
) -> Result<String, Unsupported> {
    let program = statements.program;
    let has = |wanted: fn(&Instruction) -> bool| program.instructions().iter().any(wanted);
    let has_barriers = has(|instruction| matches!(instruction, Instruction::Barrier { .. }));
    let code = match structured::body(statements, has_barriers)? {
        Some(code) => code,
        None => dispatch::body(statements, has_barriers)?,
    };
    let mut text = String::new();
    if reports_faults(program, bounds) {
        text.push_str(faults::REPORT);
    }
    if program.has_loops() {
        text.push_str(faults::TURNS);
    }
    if bounds != Bounds::Proven || program.pool_bytes() > 0 {
        text.push_str(if bounds == Bounds::Checked {
            faults::CHECKED
        } else {
            faults::FORCED
        });
    }
    text.push_str(&pool_text(program, bounds));
    text.push_str(&shared_text(
        shape,
        statements.memory.is_atomic(Space::Shared),
        code.contains("first_pc"),
    ));
    text.push_str(&statements.memory.text());
    let _ = write!(
        text,
        "\nfn run(block: u32, local: u32) {{\n{}{code}}}\n\n{}",
        registers(program, bounds),
        main(shape, &statements.memory, program.has_loops())
    );
    Ok(format!("{}{text}", library::used_by(&text)))
}

/// The initial state of a lane.
fn registers(program: &Program, bounds: Bounds) -> String {
    let mut variables = BTreeSet::new();
    let mut predicates = BTreeSet::new();
    for instruction in program.instructions() {
        let reads = instruction.reads();
        variables.extend(
            reads
                .registers
                .iter()
                .map(|(register, ty)| (*register, ty.bytes() == 8)),
        );
        predicates.extend(reads.predicate);
        match instruction.write() {
            Some(Write::Register(register, ty)) => {
                variables.insert((register, ty.bytes() == 8));
            }
            Some(Write::Predicate(predicate)) => {
                predicates.insert(predicate);
            }
            None => {}
        }
    }
    let mut text = String::from(
        "    let lane = block * params.block_lanes + local;\n    let block_x = block % params.grid_x;\n",
    );
    if reports_faults(program, bounds) {
        text.push_str("    lane_number = lane;\n    faulted = false;\n");
    }
    if program.has_loops() {
        text.push_str("    var turns = 0u;\n");
    }
    for (register, wide) in variables {
        let (ty, zero) = if wide {
            (Type::U64, "vec2<u32>(0u, 0u)")
        } else {
            (Type::U32, "0u")
        };
        let _ = writeln!(
            text,
            "    var {} = {};",
            variable(register, ty),
            preloaded(register, ty).unwrap_or(zero)
        );
    }
    predicates.iter().for_each(|predicate| {
        let _ = writeln!(text, "    var {predicate} = false;");
    });
    let uses = |wanted: fn(&Instruction) -> bool| program.instructions().iter().any(wanted);
    if uses(|instruction| {
        matches!(
            instruction,
            Instruction::PhaseGet { .. } | Instruction::PhaseAdvance { .. }
        )
    }) {
        text.push_str("    var phase = 0u;\n");
    }
    if uses(|instruction| {
        matches!(
            instruction,
            Instruction::ResonanceAccumulate { .. } | Instruction::UnityTest { .. }
        )
    }) {
        text.push_str("    var resonance = array<u32, 96>();\n");
    }
    if program.pool_bytes() > 0 {
        let _ = writeln!(
            text,
            "    pool_words = array<u32, {}>();\n    pool_next = 0u;",
            program.pool_bytes().div_ceil(4)
        );
    }
    text
}

fn preloaded(register: Register, ty: Type) -> Option<&'static str> {
    match (register, ty) {
        (Register::LANE, Type::U32) => Some("local % params.block_x"),
        (Register::BLOCK, Type::U32) => Some("block_x"),
        (Register::BLOCK_SIZE, Type::U32) => Some("params.block_x"),
        (Register::GLOBAL_LANE, Type::U64) => Some("vec2<u32>(lane, 0u)"),
        _ => None,
    }
}

fn shared_text(shape: Shape, is_atomic: bool, meets: bool) -> String {
    let Shape::Blocks { shared_bytes, .. } = shape else {
        return String::new();
    };
    let element = if is_atomic { "atomic<u32>" } else { "u32" };
    let mut text = format!(
        "var<workgroup> shared_words: array<{element}, {}>;\n",
        shared_bytes.div_ceil(4).max(1)
    );
    if meets {
        text.push_str("var<workgroup> first_pc: u32;\n");
    }
    text
}

/// The pool: a bump allocator in a private array.
fn pool_text(program: &Program, bounds: Bounds) -> String {
    let uses = |instruction: &Instruction| {
        matches!(
            instruction,
            Instruction::PoolAllocate { .. }
                | Instruction::PoolFree { .. }
                | Instruction::PoolLoad { .. }
                | Instruction::PoolStore { .. }
        )
    };
    let bytes = program.pool_bytes();
    if bytes == 0 && !program.instructions().iter().any(uses) {
        return String::new();
    }
    let fault = |kind: u32, at: &str, size: &str| match bounds {
        Bounds::Checked => format!("fault({kind}u, instruction, {at}, {size});\n        "),
        Bounds::Forced | Bounds::Proven => String::new(),
    };
    let exhausted = fault(faults::POOL_EXHAUSTED, "vec2<u32>(bytes, 0u)", "0u");
    let beyond = fault(faults::OUT_OF_BOUNDS, "offset", "handle.y");
    format!(
        "\
var<private> pool_words: array<u32, {}>;
var<private> pool_next: u32;

fn pool_take(bytes: u32, instruction: u32) -> vec2<u32> {{
    if bytes > {bytes}u || pool_next > {bytes}u - bytes {{
        {exhausted}return vec2<u32>(0u, 0u);
    }}
    let first = pool_next;
    pool_next = first + ((bytes + 7u) & 0xfffffff8u);
    return vec2<u32>(first, bytes);
}}

fn pool_give(handle: vec2<u32>) {{
    let end = add_64(vec2<u32>(handle.x, 0u), add_64(vec2<u32>(handle.y, 0u), vec2<u32>(7u, 0u)) & vec2<u32>(0xfffffff8u, 0xffffffffu));
    if eq_64(end, vec2<u32>(pool_next, 0u)) {{
        pool_next = handle.x;
    }}
}}

fn pool_at(handle: vec2<u32>, offset: vec2<u32>, width: u32, instruction: u32) -> vec2<u32> {{
    if offset.y != 0u || handle.y < width || offset.x > handle.y - width {{
        {beyond}return vec2<u32>(0xffffffffu, 0xffffffffu);
    }}
    return add_64(vec2<u32>(handle.x, 0u), offset);
}}
",
        bytes.div_ceil(4).max(1)
    )
}

/// The entry point, which may report its own loops too. `zero` is 0, unknown to the compiler.
fn main(shape: Shape, memory: &Memory<'_>, reports: bool) -> String {
    let report = |lane: &str| {
        if reports {
            format!("    if more {{ lane_number = {lane}; stopped(0u, 0u); }}\n")
        } else {
            String::new()
        }
    };
    let Shape::Blocks {
        lanes,
        shared_bytes,
    } = shape
    else {
        let told = report("lane");
        return format!(
            "\
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    var lane = id.x;
    var more = lane < params.lanes;
    while more && params.zero == 0u {{
        run(lane / params.block_lanes, lane % params.block_lanes);
        more = params.lanes - lane > {WORKGROUP}u * groups.x;
        lane += {WORKGROUP}u * groups.x;
    }}
{told}}}
"
        );
    };
    let words = shared_bytes.div_ceil(4).max(1);
    let clear = if memory.is_atomic(Space::Shared) {
        "atomicStore(&shared_words[i], 0u);"
    } else {
        "shared_words[i] = 0u;"
    };
    let told = report("block * params.block_lanes + local");
    format!(
        "\
@compute @workgroup_size({lanes})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
    var block = group.x;
    var more = true;
    loop {{
        run(block, local);
        more = params.blocks - block > groups.x;
        if !more || params.zero != 0u {{ break; }}
        block += groups.x;
        workgroupBarrier();
        for (var i = local; i < {words}u; i += {lanes}u) {{ {clear} }}
        workgroupBarrier();
    }}
{told}}}
"
    )
}
