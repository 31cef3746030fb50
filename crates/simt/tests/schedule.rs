//! The schedule: replay, variety, progress, the memory model, several host threads at once.
#![allow(clippy::missing_safety_doc)]

use std::collections::HashSet;
use warpset_simt::emulator::{Config, Emulator, Fault, FaultKind, SEED_VARIABLE};
use warpset_simt::{GlobalMut, LaunchConfig, atomic, fence, kernel, thread};

kernel! {
    /// Records the order in which threads get a ticket.
    pub unsafe fn tickets(counter: GlobalMut<u32>, order: GlobalMut<u32>) {
        // SAFETY: an entry a thread, and each ticket is one thread's.
        unsafe {
            let ticket = atomic::fetch_add(counter, 1);
            order.write(ticket as usize, thread::index_1d());
        }
    }
}

fn order(e: &Emulator) -> Vec<u32> {
    let (counter, order) = (e.buffer_from(&[0u32]), e.buffer(256));
    // SAFETY: 256 threads, 256 entries.
    unsafe { tickets { counter: counter.global_mut(), order: order.global_mut() }.launch(e, LaunchConfig::new(8, 32)) }
        .unwrap();
    order.to_vec()
}

#[test]
fn a_seed_replays_its_schedule() {
    for seed in 0..4 {
        let (a, b) = (Emulator::new(Config::seeded(seed)), Emulator::new(Config::seeded(seed)));
        for _ in 0..3 {
            assert!(order(&a) == order(&b));
        }
    }
}

#[test]
fn the_environment_sets_the_seed() {
    // The variable is read in a process of its own, so that other tests do not see it.
    const CHILD: &str = "WARPSET_TEST_IS_CHILD";
    if std::env::var_os(CHILD).is_some() {
        println!("seed: {:#x}", Emulator::new(Config::seeded(1)).config().seed);
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_environment_sets_the_seed", "--nocapture"])
        .env(CHILD, "1")
        .env(SEED_VARIABLE, "0xabc")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("seed: 0xabc"), "{text}");
}

#[test]
fn seeds_and_launches_differ() {
    let e = Emulator::new(Config::seeded(1));
    let mut orders: HashSet<_> = (0..10).map(|_| order(&e)).collect();
    orders.extend((2..12).map(|seed| order(&Emulator::new(Config::seeded(seed)))));
    assert_eq!(orders.len(), 20);
}

kernel! {
    /// Lets each block wait for one that runs at the same time: pairs hand a word to and fro.
    pub unsafe fn ping_pong(words: GlobalMut<u32>, rounds: u32) {
        let block = thread::block_idx_x();
        // SAFETY: a word for two blocks, only accessed atomically.
        unsafe {
            let word = words.at(block as usize / 2);
            for round in 0..rounds {
                while atomic::load_relaxed(word) != round * 2 + block % 2 {
                    thread::spin_hint();
                }
                atomic::store_relaxed(word, round * 2 + block % 2 + 1);
            }
        }
    }
}

#[test]
fn resident_blocks_make_progress_together() {
    for seed in 0..8 {
        let e = Emulator::new(Config::seeded(seed));
        let words = e.buffer_from(&[0u32]);
        // SAFETY: one word for two blocks.
        unsafe { ping_pong { words: words.global_mut(), rounds: 50 }.launch(&e, LaunchConfig::new(2, 1)) }.unwrap();
        assert_eq!(words.to_vec(), [100]);
    }
    // One block after another cannot do it.
    let e = Emulator::new(Config { resident_blocks: 1, ..Config::default() });
    let words = e.buffer_from(&[0u32]);
    // SAFETY: as above.
    let fault =
        unsafe { ping_pong { words: words.global_mut(), rounds: 50 }.launch(&e, LaunchConfig::new(2, 1)) }.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
}

#[test]
fn host_threads_launch_at_once() {
    let e = Emulator::new(Config::default());
    let (counter, total) = (e.buffer_from(&[0u32]), 8 * 4 * 64);
    let order = e.buffer::<u32>(total);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..4 {
                    // SAFETY: an entry for each thread of all launches.
                    unsafe {
                        tickets { counter: counter.global_mut(), order: order.global_mut() }
                            .launch(&e, LaunchConfig::new(2, 32))
                    }
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(counter.to_vec(), [total as u32]);
    assert!(order.to_vec().iter().all(|&thread| thread < 64));
}

/// Way in which `message` publishes and observes.
const FENCES: u32 = 0;
const RELEASE_ACQUIRE: u32 = 1;
const NO_WRITER_FENCE: u32 = 2;
const NO_READER_FENCE: u32 = 3;
const NOTHING: u32 = 4;
const BLOCK_FENCES: u32 = 5;

kernel! {
    /// Sends data and a flag from the first thread; the last waits for the flag and reads the data, plainly or
    /// (`atomic_data`) by a relaxed load.
    pub unsafe fn message(words: GlobalMut<u32>, out: GlobalMut<u32>, how: u32, atomic_data: u32) {
        let (data, flag) = (words, words.at(64));
        let last = thread::grid_dim_x() * thread::block_dim_x() - 1;
        // SAFETY: the words are there; ordered or not, as `how` says.
        unsafe {
            if thread::index_1d() == 0 {
                if atomic_data == 1 {
                    atomic::store_relaxed(data, 42);
                } else {
                    data.write(0, 42);
                }
                match how {
                    FENCES | NO_READER_FENCE => fence::device(),
                    BLOCK_FENCES => fence::block(),
                    _ => {}
                }
                if how == RELEASE_ACQUIRE {
                    atomic::store_release(flag, 1);
                } else {
                    atomic::store_relaxed(flag, 1);
                }
            } else if thread::index_1d() == last {
                if how == RELEASE_ACQUIRE {
                    while atomic::load_acquire(flag) == 0 {
                        thread::spin_hint();
                    }
                } else {
                    while atomic::load_relaxed(flag) == 0 {
                        thread::spin_hint();
                    }
                }
                match how {
                    FENCES | NO_WRITER_FENCE => fence::device(),
                    BLOCK_FENCES => fence::block(),
                    _ => {}
                }
                out.write(0, if atomic_data == 1 { atomic::load_relaxed(data) } else { data.read(0) });
            }
        }
    }
}

fn send(e: &Emulator, how: u32, atomic_data: u32, blocks: u32) -> Result<u32, Fault> {
    let (words, out) = (e.buffer_from(&[0u32; 128]), e.buffer(1));
    let config = LaunchConfig::new(blocks, 2 / blocks);
    // SAFETY: 128 words and one.
    unsafe { message { words: words.global_mut(), out: out.global_mut(), how, atomic_data }.launch(e, config) }?;
    Ok(out.to_vec()[0])
}

#[test]
fn a_missing_fence_is_a_race_on_plain_data() {
    for seed in 0..50 {
        for blocks in [1, 2] {
            let e = Emulator::new(Config::seeded(seed));
            for how in [FENCES, RELEASE_ACQUIRE] {
                assert_eq!(send(&e, how, 0, blocks).unwrap(), 42);
            }
            for how in [NO_WRITER_FENCE, NO_READER_FENCE, NOTHING] {
                let fault = send(&e, how, 0, blocks).unwrap_err();
                assert!(matches!(fault.kind, FaultKind::Race { .. }), "{fault}");
            }
            // A fence of block scope is enough inside a block, and only there.
            assert_eq!(send(&e, BLOCK_FENCES, 0, blocks).is_ok(), blocks == 1);
        }
    }
}

#[test]
fn a_missing_fence_is_seen_in_relaxed_data() {
    let values = |how| -> HashSet<u32> {
        let send = |seed| send(&Emulator::new(Config::seeded(seed)), how, 1, 2).unwrap();
        (0..400).map(send).collect()
    };
    for how in [FENCES, RELEASE_ACQUIRE] {
        assert_eq!(values(how), HashSet::from([42]));
    }
    for how in [NO_WRITER_FENCE, NO_READER_FENCE, NOTHING] {
        assert_eq!(values(how), HashSet::from([0, 42]));
    }
}

kernel! {
    /// Sums in the last block what all have counted: the usual ending of a reduction.
    pub unsafe fn last_block_sums(parts: GlobalMut<u32>, done: GlobalMut<u32>, out: GlobalMut<u32>, fenced: u32) {
        let blocks = thread::grid_dim_x();
        // SAFETY: one part per block; the last block reads them after all have counted
        // themselves (after a fence, if `fenced`).
        unsafe {
            parts.write(thread::block_idx_x() as usize, 3);
            if fenced == 1 {
                fence::device();
            }
            if atomic::fetch_add(done, 1) == blocks - 1 {
                if fenced == 1 {
                    fence::device();
                }
                let mut sum = 0;
                for i in 0..blocks {
                    sum += parts.read(i as usize);
                }
                out.write(0, sum);
            }
        }
    }
}

#[test]
fn counting_passes_on_what_all_have_done() {
    for seed in 0..20 {
        for fenced in [0, 1] {
            let e = Emulator::new(Config::seeded(seed));
            let (parts, done, out) = (e.buffer(20), e.buffer_from(&[0u32]), e.buffer(1));
            let config = LaunchConfig::new(20, 1);
            // SAFETY: the sizes are those that the kernel asks for.
            let result = unsafe {
                last_block_sums { parts: parts.global_mut(), done: done.global_mut(), out: out.global_mut(), fenced }
                    .launch(&e, config)
            };
            if fenced == 1 {
                result.unwrap();
                assert_eq!(out.to_vec(), [60]);
            } else {
                assert!(matches!(result.unwrap_err().kind, FaultKind::Race { .. }));
            }
        }
    }
}
