@name("a"
control C() { apply { } }
