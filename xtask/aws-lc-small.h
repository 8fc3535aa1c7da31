/*
 * Read before each file of AWS-LC in the build of an agent. AWS-LC's setting for small programs (OPENSSL_SMALL) leaves
 * out the tables of curves, which only a handshake uses (230 kB packed), and the AVX-512 code of AES-GCM, which encrypts
 * every byte (50 kB packed; without it a copy costs 8 % more CPU time on a processor that has AVX-512). Only the first
 * is wanted: target.h, which derives the second from the first, is read before the setting is made.
 */
#if __has_include(<openssl/target.h>) /* Not where the build asks what the compiler can do. */
#include <openssl/target.h>
#define OPENSSL_SMALL 1
#endif
