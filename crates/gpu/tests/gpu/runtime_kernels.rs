//! Kernels for tests of the runtime, with PTX written by hand (`runtime_kernels.ptx`).

use warpset_simt::{Global, GlobalMut, kernel, shared, thread};

kernel! {
    /// Sets `to[i] = from[i] + amount`.
    ///
    /// # Safety
    /// Both are valid for `n` words, and no other thread accesses `to`.
    pub unsafe fn add(from: Global<u32>, to: GlobalMut<u32>, n: usize, amount: u32) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and each `i` belongs to one thread.
            unsafe { to.write(i, from.read(i).wrapping_add(amount)) };
        }
    }

    /// Reverses `n` words through shared memory.
    ///
    /// # Safety
    /// One block, with `4 * n` bytes of dynamic shared memory. `words` is valid for `n` words.
    pub unsafe fn reverse(words: GlobalMut<u32>, n: usize) {
        let copy = shared::dynamic::<u32>(0);
        let first = thread::thread_idx_x() as usize;
        let step = thread::block_dim_x() as usize;
        for i in (first..n).step_by(step) {
            // SAFETY: `i < n`, and each `i` belongs to one thread.
            unsafe { copy.set(i as u32, words.read(i)) };
        }
        thread::sync_threads();
        for i in (first..n).step_by(step) {
            // SAFETY: as above, and the barrier lies between the writes and the reads.
            unsafe { words.write(i, copy.get((n - 1 - i) as u32)) };
        }
    }

    /// Counts its threads in their own words.
    ///
    /// # Safety
    /// `words` is valid for one word per thread.
    #[launch_bounds(64, 1)]
    pub unsafe fn bounded(words: GlobalMut<u32>) {
        // SAFETY: one word per thread.
        unsafe { words.write(thread::index_1d() as usize, 1) };
    }

    /// Writes far outside of its buffer.
    ///
    /// # Safety
    /// None can make this sound: it is there to crash.
    pub unsafe fn crash(words: GlobalMut<u32>) {
        // SAFETY: not safe; the emulator reports it, and the device traps.
        unsafe { words.write(1 << 40, 1) };
    }

    /// Sets `word[0] = value` after a while.
    ///
    /// # Safety
    /// `word` is valid for one word; one thread.
    pub unsafe fn slow(word: GlobalMut<u32>, value: u32, rounds: u32) {
        let mut spent = 0;
        for _ in 0..rounds {
            spent += warpset_simt::opaque(1); // the PTX sleeps; here that would count as polling
        }
        let value = value.wrapping_add(spent - rounds);
        // SAFETY: the word is there.
        unsafe { word.write(0, value) };
    }

    /// Is not in the PTX.
    ///
    /// # Safety
    /// Nothing is asked.
    pub unsafe fn absent() {}
}
