#include <core.p4>
#include <v1model.p4>
control C(inout bit<8> x) {
    apply {
        switch (x > 5) { true: { x = 1; } false: { x = 2; } }
        switch (5) { 5: { x = 1; } }
        switch (x) { 5: { x = 1; } x: { } 5: { } default: { } }
    }
}
