mod real_kernel;
