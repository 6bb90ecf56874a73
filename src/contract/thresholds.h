// From where on something is no longer short, and where it goes then. Those that happen to be equal
// mean different things, and may be changed apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::contract {

// --- I/O thread -> reader pool: a read that is about to do more calls begin_walk()

inline constexpr uint64_t kVisitedOnIoThread = 512;   // elements, of all sources together
inline constexpr size_t kArgumentsOnIoThread = 1024;  // of any command that reads
inline constexpr uint64_t kScannedOnIoThread = 256;   // COUNT of HSCAN, SSCAN, ZSCAN
inline constexpr uint64_t kDrawnOnIoThread = 32;      // elements at random: a seek for each
// Names with the patterns of their user: some hundred microseconds.
inline constexpr uint64_t kComparedOnIoThread = 16 << 10;
inline constexpr size_t kHashedOnIoThreadBytes = 64 << 10;  // of a password; nor by the writer
inline constexpr unsigned kPageCacheReadsOnIoThread = 8;    // blocks: some microseconds each

// --- the pool's look-ups -> its short work

inline constexpr unsigned kLookupRuns = 8;  // a command runs once for each read that it needs

// --- among the reader pool's short work -> among its long work, of which some threads are kept
// free

inline constexpr uint64_t kWalkedAtOnce = 16 << 10;  // elements: some milliseconds

// --- writer -> reader pool: a larger value is made beside the writer

inline constexpr uint64_t kMadeByWriter = 512;              // elements of what STORE commands read
inline constexpr size_t kMadeByWriterBytes = 1 << 20;       // of the elements that it makes
inline constexpr uint64_t kCopiedByWriter = 1024;           // elements of what COPY copies
inline constexpr uint64_t kStringByWriterBytes = 1 << 20;   // of a string that COPY or BITOP makes
inline constexpr size_t kRestoredByWriterBytes = 16 << 10;  // of a dump
inline constexpr uint64_t kSplicedByWriterBytes = 4 << 20;  // of an argument that came large

// A unit adds no more elements to a collection than these; the pool adds more of them, to it or to
// a new one in its place, unless they are too many for that and it is far larger yet
// (commands/large_addition.h).
inline constexpr uint64_t kAddedByWriter = 4096;
inline constexpr uint64_t kScoredByWriter = 1024;  // a leaf of their order for each
// What the pool has added to a collection is held, and put once more by the writer.
inline constexpr uint64_t kRepeatedByWriter = 16'384;
// Nor does it remove more than this: the pool does, from a collection that is far larger, and the
// writer repeats it; of others the rest becomes a new collection (commands/large_removal.h).
inline constexpr uint64_t kRemovedByWriter = 4096;
inline constexpr uint64_t kRemovalsRepeatedByWriter = 65'536;
inline constexpr size_t kRemovalsRepeatedByWriterBytes = 16 << 20;  // of changes
// What a removal from a collection that its transaction has changed takes of what a unit may change
// (memory): of as many as that holds the writer removes each, and writes nothing anew.
inline constexpr uint64_t kRemovalBytes = 256;
// Nor elements of so many bytes; of members the order has as much again, some times over.
inline constexpr uint64_t kPoppedBytesByWriter = 16 << 20;
inline constexpr uint64_t kMemberBytesByWriter = 4 << 20;
// Entries that a stream is trimmed by: what XTRIM with ~ takes at most by default.
inline constexpr uint64_t kTrimmedByWriter = 10'000;
// Entries of streams that are given to a consumer at once, and their bytes; who asked for more asks
// again.
inline constexpr uint64_t kDeliveredByWriter = 16'384;
inline constexpr uint64_t kDeliveredBytesByWriter = 16 << 20;
// Of a larger set SPOP draws some members ahead; a smaller one that it empties it takes whole.
inline constexpr uint64_t kDrawnFromAll = 1024;
// Drawn at random: some seeks for each.
inline constexpr uint64_t kDrawnByWriter = 128;
// Removed one by one: a seek or a leaf for each.
inline constexpr uint64_t kRemovedSingly = 1024;
// Elements of a list that LINSERT and LREM look at.
inline constexpr uint64_t kSearchedByWriter = 4096;
// The same where they share records, which a change in the middle puts apart.
inline constexpr uint64_t kPutApartByWriter = 1024;

// --- held -> streamed: a longer reply is made while the client takes it

// Fewer take some hundred microseconds at most.
inline constexpr uint64_t kHeldElements = 512;
inline constexpr uint64_t kHeldInPool = 1024;  // as many as an image has
// However few elements there are, the rest is streamed.
inline constexpr size_t kHeldElementsBytes = 64 << 10;
// Of one string, or of all that MGET answers.
inline constexpr size_t kHeldStringsBytes = 128 << 10;
// Of values that stand in their records, for MGET and HMGET: what follows is looked up once more.
inline constexpr size_t kHeldValuesBytes = 1 << 20;
// Where a walk tells the count: what follows is counted alone, and read again.
inline constexpr size_t kHeldToCountBytes = 1 << 20;

// --- held -> refused: what is drawn inside a transaction cannot be streamed

inline constexpr uint64_t kDrawnInTransactionMax = 1 << 20;

// --- memory -> engine: more items are sorted under a collection id

inline constexpr size_t kSortedInMemoryBytes = 4 << 20;

// --- this call -> the next: so many bytes end a call of SCAN and its relatives, whatever its COUNT

inline constexpr size_t kScanBytesMax = 4 << 20;

}  // namespace ingot::contract
