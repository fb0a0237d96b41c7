// The P4_16 core library, declared from the P4_16 language specification (appendix D).
#ifndef _CORE_P4_
#define _CORE_P4_

// Match kinds every architecture has.
match_kind { exact, ternary, lpm }

// Parser errors, in the order that gives them their numbers.
error {
    NoError,            // all is well
    PacketTooShort,     // extract, advance or lookahead ran past the packet
    NoMatch,            // select found no case
    StackOutOfBounds,   // a header stack has no such element
    HeaderTooShort,     // the length given for a varbit exceeds the field
    ParserTimeout,      // the parser took too long
    ParserInvalidArgument
}

extern packet_in {
    void extract<T>(out T hdr);
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    T lookahead<T>();
    void advance(in bit<32> sizeInBits);
    bit<32> length();
}

extern packet_out {
    void emit<T>(in T hdr);
}

// In parsers: raises `toSignal` unless `check` holds.
extern void verify(in bool check, in error toSignal);

@noWarn("unused")
action NoAction() {}

extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
