//! The race detector against full vector clocks, on random programs of accesses and barriers.
#![allow(clippy::missing_safety_doc)]

use proptest::prelude::*;
use warpset_simt::emulator::{Config, Emulator, FaultKind};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, LaunchConfig, kernel, thread, warp};

/// Threads that act: three lanes of each of two warps, in each of two blocks.
const ACTORS: [u32; 6] = [0, 1, 2, 32, 33, 34];
const BLOCK: u32 = 64;
const WORDS: usize = 3;

/// A step of a program, in an order in which it could happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Actor `actor` of block `block` accesses a word; in shared memory, the block's own.
    Access { block: u32, actor: usize, word: usize, write: bool, shared: bool },
    /// A barrier of all threads of a block.
    Barrier { block: u32 },
    /// A barrier of the actors of a warp whose bits are set.
    WarpBarrier { block: u32, warp: u32, lanes: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let access = (0..2u32, 0..ACTORS.len(), 0..WORDS, prop::bool::weighted(0.3), any::<bool>())
        .prop_map(|(block, actor, word, write, shared)| Step::Access { block, actor, word, write, shared });
    let barrier = (0..2u32).prop_map(|block| Step::Barrier { block });
    let warp = (0..2u32, 0..2u32, 1..8u32).prop_map(|(block, warp, lanes)| Step::WarpBarrier { block, warp, lanes });
    prop_oneof![4 => access, 1 => barrier, 2 => warp]
}

impl Step {
    /// Encodes the step in four words: kind, block, who, and what.
    fn encode(self) -> [u32; 4] {
        match self {
            Step::Access { block, actor, word, write, shared } => {
                [u32::from(write) + 2 * u32::from(shared), block, ACTORS[actor], word as u32]
            }
            Step::Barrier { block } => [4, block, 0, 0],
            Step::WarpBarrier { block, warp, lanes } => [5, block, warp, lanes],
        }
    }
}

kernel! {
    /// Interprets a program: each thread does the steps that concern it, in order.
    pub unsafe fn interpret(program: Global<u32>, steps: usize, words: GlobalMut<u32>) {
        let tile: Shared<u32> = shared::dynamic(0);
        let (block, t) = (thread::block_idx_x(), thread::thread_idx_x());
        // SAFETY: `steps` times four words; `WORDS` words of both memories; the lanes of a warp barrier all reach it,
        // because the program is the same for all. Races are the point.
        unsafe {
            for i in 0..steps {
                let [kind, of_block, who, what] = program.read4_nc(i * 4);
                if of_block != block {
                    continue;
                }
                match kind {
                    0 if who == t => _ = words.read(what as usize),
                    1 if who == t => words.write(what as usize, t),
                    2 if who == t => _ = tile.get(what),
                    3 if who == t => tile.set(what, t),
                    4 => thread::sync_threads(),
                    5 if t / 32 == who && what >> (t % 32) & 1 == 1 => warp::sync_warp(what),
                    _ => {}
                }
            }
        }
    }
}

/// Thread, time, word, and whether it wrote.
type Access = (usize, u32, (bool, u32, usize), bool);

/// Whether two conflicting accesses are unordered, by a vector clock a thread.
fn has_race(program: &[Step]) -> bool {
    const N: usize = 2 * BLOCK as usize;
    let mut clocks = vec![[0u32; N]; N];
    for (thread, clock) in clocks.iter_mut().enumerate() {
        clock[thread] = 1;
    }
    let meet = |clocks: &mut Vec<[u32; N]>, members: Vec<usize>| {
        let mut all = [0; N];
        for &m in &members {
            for (all, time) in all.iter_mut().zip(clocks[m]) {
                *all = time.max(*all);
            }
        }
        for m in members {
            clocks[m] = all;
            clocks[m][m] += 1;
        }
    };
    let mut accesses: Vec<Access> = Vec::new();
    for &step in program {
        match step {
            Step::Access { block, actor, word, write, shared } => {
                let me = (block * BLOCK + ACTORS[actor]) as usize;
                let place = (shared, if shared { block } else { 0 }, word);
                let unordered = |&(other, time, at, wrote): &Access| {
                    at == place && (write || wrote) && other != me && clocks[me][other] < time
                };
                if accesses.iter().any(unordered) {
                    return true;
                }
                accesses.push((me, clocks[me][me], place, write));
            }
            Step::Barrier { block } => {
                let first = (block * BLOCK) as usize;
                meet(&mut clocks, (first..first + BLOCK as usize).collect());
            }
            Step::WarpBarrier { block, warp, lanes } => {
                let first = (block * BLOCK + warp * 32) as usize;
                meet(&mut clocks, (0..3).filter(|l| lanes >> l & 1 == 1).map(|l| first + l).collect());
            }
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn reports_races_and_nothing_else(program in prop::collection::vec(step(), 1..24), seed in any::<u64>()) {
        let emulator = Emulator::new(Config::seeded(seed));
        let code: Vec<u32> = program.iter().flat_map(|step| step.encode()).collect();
        let (code, words) = (emulator.buffer_from(&code), emulator.buffer_from(&[0u32; WORDS]));
        let config = LaunchConfig::new(2, BLOCK).shared(16);
        // SAFETY: four words per step, and `WORDS` words; the emulator checks the rest.
        let result = unsafe { interpret { program: code.global(), steps: program.len(), words: words.global_mut() }.launch(&emulator, config) };
        match result {
            Ok(()) => prop_assert!(!has_race(&program), "missed"),
            Err(fault) => {
                prop_assert!(matches!(fault.kind, FaultKind::Race { .. }), "{}", fault);
                prop_assert!(has_race(&program), "invented: {}", fault);
            }
        }
    }
}
