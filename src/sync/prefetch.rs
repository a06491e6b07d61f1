//! Asks the processor for cache lines before a thread writes to them.

/// The distance between two requests: a cache line, or a part of one where lines are longer.
const LINE: usize = 64;

/// Asks the processor for the cache lines of `length` bytes from `start` on, because this thread will write to them
/// soon. The call waits for nothing and changes nothing but the time that the writes take. It does nothing on
/// processors other than x86-64 and AArch64, and in Miri.
///
/// A thread that writes to one line after the other, each of them last read by another core, waits for each line: a
/// locked instruction between the writes waits until the line of the write before it is there. With the request all
/// lines come at the same time.
#[inline]
pub(crate) fn prefetch_for_write(start: *const u8, length: usize) {
    for offset in (0..length).step_by(LINE) {
        request(start.wrapping_add(offset));
    }
}

#[inline(always)]
fn request(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction is a hint: it accesses no memory as far as the program can tell, does not fault at any
    // address, and changes no register. Processors that do not know it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::prefetch_for_write;

    #[test]
    fn a_request_is_harmless_at_any_address() {
        let mut values = vec![7_u64; 100];
        prefetch_for_write(values.as_mut_ptr().cast(), 800);
        prefetch_for_write(std::ptr::null(), 1_000);
        prefetch_for_write(std::ptr::without_provenance(usize::MAX - 10), 200);
        assert_eq!(values, [7; 100]);
    }
}
