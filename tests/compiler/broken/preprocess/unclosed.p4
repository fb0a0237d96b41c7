const bit<8> a = 1;
/* a comment that nobody closes
