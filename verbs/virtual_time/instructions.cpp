// Opcodes: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A.
#include "instructions.hpp"

#include <cstring>

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ucontext.h>

namespace weft::verbs {
namespace {

constexpr int kGeneral[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct Decoded {
  const unsigned char* at;  // after the opcode
  const long long* registers;
  unsigned opcode = 0;
  unsigned rex = 0;
  bool is_wide = false;    // REX.W
  bool is_narrow = false;  // 66
  bool has_segment = false;
  bool is_locked = false;

  unsigned modrm() const { return *at; }
  bool is_register() const { return modrm() >> 6 == 3; }
  unsigned extension() const { return modrm() >> 3 & 7; }
  long long general(unsigned number) const { return registers[kGeneral[number & 15]]; }
};

// Where the operand in memory is; `rest`: bytes of the instruction that follow it.
uint64_t address_of(const Decoded& of, unsigned immediate_bytes) {
  const unsigned mode = of.modrm() >> 6;
  const unsigned base = of.modrm() & 7;
  const unsigned char* next = of.at + 1;
  long long address = 0;
  bool has_displacement32 = mode == 2;
  bool is_relative = false;
  if (base == 4) {
    const unsigned sib = *next++;
    const unsigned index = (sib >> 3 & 7) | (of.rex & 2) << 2;
    if (index != 4) address += of.general(index) << (sib >> 6);
    if ((sib & 7) == 5 && mode == 0)
      has_displacement32 = true;
    else
      address += of.general((sib & 7) | (of.rex & 1) << 3);
  } else if (base == 5 && mode == 0) {
    has_displacement32 = is_relative = true;
  } else {
    address += of.general(base | (of.rex & 1) << 3);
  }
  if (mode == 1) {
    address += static_cast<signed char>(*next++);
  } else if (has_displacement32) {
    int32_t displacement = 0;
    memcpy(&displacement, next, sizeof displacement);
    next += sizeof displacement;
    address += displacement;
  }
  if (is_relative) address += reinterpret_cast<long long>(next + immediate_bytes);
  return static_cast<uint64_t>(address);
}

// Whether a store of a register or constant finds its value there.
bool stores_the_same(const Decoded& of) {
  if (of.has_segment) return false;
  const bool is_byte = of.opcode == 0x88 || of.opcode == 0xC6;
  const size_t bytes = is_byte ? 1 : of.is_wide ? 8 : of.is_narrow ? 2 : 4;
  const bool is_constant = of.opcode >= 0xC6;
  const unsigned immediate_bytes = !is_constant ? 0 : bytes == 8 ? 4 : static_cast<unsigned>(bytes);
  uint64_t value = 0;
  if (is_constant) {
    // After the operand, of whose bytes only the address is needed otherwise.
    const unsigned mode = of.modrm() >> 6;
    const unsigned base = of.modrm() & 7;
    const bool has_sib = base == 4;
    const unsigned after_base = has_sib ? of.at[1] & 7 : base;
    const unsigned displacement = mode == 1 ? 1 : mode == 2 || after_base == 5 ? 4 : 0;
    int32_t constant = 0;
    memcpy(&constant, of.at + 1 + (has_sib ? 1 : 0) + displacement, immediate_bytes);
    value = static_cast<uint64_t>(static_cast<int64_t>(constant));
  } else {
    const unsigned number = of.extension() | (of.rex & 4) << 1;
    if (is_byte && of.rex == 0 && number >= 4) return false;  // AH to BH
    value = static_cast<uint64_t>(of.general(number));
  }
  return memcmp(reinterpret_cast<const void*>(address_of(of, immediate_bytes)), &value, bytes) == 0;
}

bool keeps_memory_of_two(const Decoded& of) {
  const unsigned opcode = of.opcode;
  if (opcode >= 0x40 && opcode <= 0x4F) return true;              // CMOVcc
  if (opcode >= 0x80 && opcode <= 0x8F) return true;              // Jcc
  if (opcode >= 0x90 && opcode <= 0x9F) return of.is_register();  // SETcc
  if (opcode >= 0xC8 && opcode <= 0xCF) return true;              // BSWAP
  switch (opcode) {
    case 0x10:  // MOVUPS and its kind, from memory or registers
    case 0x18:  // PREFETCH
    case 0x1E:  // ENDBR64
    case 0x1F:  // NOP
    case 0x28:  // MOVAPS
    case 0x2E:  // UCOMISS
    case 0x2F:  // COMISS
    case 0x6F:  // MOVDQA, MOVDQU
    case 0x74:  // PCMPEQB, W, D
    case 0x75:
    case 0x76:
    case 0xA3:  // BT
    case 0xAF:  // IMUL
    case 0xB6:  // MOVZX
    case 0xB7:
    case 0xBC:  // BSF, TZCNT
    case 0xBD:  // BSR, LZCNT
    case 0xBE:  // MOVSX
    case 0xBF:
    case 0xD7:  // PMOVMSKB
    case 0xDB:  // PAND
    case 0xEB:  // POR
    case 0xEF:  // PXOR
      return true;
    case 0xAE:  // LFENCE, MFENCE, SFENCE
      return of.is_register() && of.extension() >= 5;
    case 0xBA:  // BT with a constant
      return of.extension() == 4;
    default:
      return false;
  }
}

bool pushes(const Decoded& of) {
  const unsigned opcode = of.opcode;
  if (opcode == 0xFF) return of.extension() == 2 || of.extension() == 6;  // CALL, PUSH
  return (opcode >= 0x50 && opcode <= 0x57) || opcode == 0x68 || opcode == 0x6A || opcode == 0xE8;
}

bool keeps_memory_of_one(const Decoded& of) {
  const unsigned opcode = of.opcode;
  if (opcode < 0x40) {  // ADD, OR, ADC, SBB, AND, SUB, XOR, CMP
    const unsigned form = opcode & 7;
    if (form > 5) return false;
    return opcode >= 0x38 || form >= 2 || of.is_register();
  }
  if (opcode >= 0x58 && opcode <= 0x5F) return true;  // POP
  if (opcode >= 0x70 && opcode <= 0x7F) return true;  // Jcc
  if (opcode >= 0xB0 && opcode <= 0xBF) return true;  // MOV of a constant
  if (opcode >= 0xD0 && opcode <= 0xD3) return of.is_register();
  switch (opcode) {
    case 0x63:  // MOVSXD
    case 0x69:  // IMUL
    case 0x6B:
    case 0x84:  // TEST
    case 0x85:
    case 0x8A:  // MOV from memory
    case 0x8B:
    case 0x8D:  // LEA
    case 0x90:  // NOP, PAUSE
    case 0x98:  // CDQE
    case 0x99:  // CQO
    case 0xA8:  // TEST of a constant
    case 0xA9:
    case 0xC2:  // RET
    case 0xC3:
    case 0xC9:  // LEAVE
    case 0xE9:  // JMP
    case 0xEB:
      return true;
    case 0x80:
    case 0x81:
    case 0x83:
      return of.extension() == 7 || of.is_register();
    case 0x86:  // XCHG
    case 0x87:
    case 0xC0:  // shifts
    case 0xC1:
      return of.is_register();
    case 0x88:  // MOV to memory
    case 0x89:
    case 0xC6:
    case 0xC7:
      return of.is_register() || stores_the_same(of);
    case 0xF6:  // TEST, NOT, NEG; MUL and DIV of registers
    case 0xF7:
      return of.is_register() || (of.extension() != 2 && of.extension() != 3);
    case 0xFE:  // INC, DEC
      return of.is_register();
    case 0xFF:  // INC, DEC, JMP
      return of.is_register() || of.extension() == 4;
    default:
      return false;
  }
}

}  // namespace

ToMemory to_memory(const unsigned char* instruction, const long long* registers) {
  Decoded of{.at = instruction, .registers = registers};
  for (bool is_prefix = true; is_prefix;) {
    switch (*of.at) {
      case 0x66:
        of.is_narrow = true;
        break;
      case 0xF0:
        of.is_locked = true;
        break;
      case 0x26:
      case 0x2E:
      case 0x36:
      case 0x3E:
      case 0x64:
      case 0x65:
        of.has_segment = true;
        break;
      case 0xF2:
      case 0xF3:
        break;
      default:
        is_prefix = false;
        continue;
    }
    ++of.at;
  }
  if ((*of.at & 0xF0) == 0x40) {
    of.rex = *of.at++;
    of.is_wide = (of.rex & 8) != 0;
  }
  if (of.is_locked) return ToMemory::kChanges;
  of.opcode = *of.at++;
  const bool has_two = of.opcode == 0x0F;
  if (has_two)
    of.opcode = *of.at++;
  else if (pushes(of))
    return ToMemory::kPushes;
  const bool keeps = has_two ? keeps_memory_of_two(of) : keeps_memory_of_one(of);
  return keeps ? ToMemory::kKeeps : ToMemory::kChanges;
}

}  // namespace weft::verbs
